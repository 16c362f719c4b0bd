// Items of an output on a device: element types, 16-byte vectors, the word of a vector in the digest of truekernel/numerics/digest.py.
// First part of the text that begins with this file; `statistics.cuh` follows.

namespace truekernel_statistics {

typedef unsigned long long Word;

constexpr double kLimit = 1e300;
constexpr double kCut = 1e6;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
enum Field { kFlat = 0, kWorst, kSquares, kSigned, kNonfinite, kUnwritten, kDigest, kPlain };

static __device__ __forceinline__ double infinity64() { return __longlong_as_double(0x7FF0000000000000LL); }
static __device__ __forceinline__ float infinity32() { return __int_as_float(0x7F800000); }
static __device__ __forceinline__ bool is_finite(double x) { return fabs(x) < infinity64(); }

// Conversions by one instruction under NVRTC, else by bits; the same values, NaN apart in its bits.
#if defined(__CUDACC_RTC__)
static __device__ __forceinline__ float half_to_float(unsigned short h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}

static __device__ __forceinline__ float round_to_half(float x) {
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return half_to_float(h);
}
#else
static __device__ __forceinline__ float half_to_float(unsigned h) {
  const unsigned magnitude = (h & 0x7FFFu) << 13, sign = (h & 0x8000u) << 16;
  if ((h & 0x7C00u) == 0x7C00u) return __uint_as_float(sign | magnitude | 0x7F800000u);
  return __uint_as_float(sign | __float_as_uint(__uint_as_float(magnitude) * 5.192296858534828e33f));  // 2^112
}

// Nearest half (ties to even), as a float.
static __device__ __forceinline__ float round_to_half(float x) {
  const unsigned bits = __float_as_uint(x), sign = bits & 0x80000000u, magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return x;
  const float size = __uint_as_float(magnitude);
  float rounded;
  if (size < 6.103515625e-05f) {
    rounded = (size + 0.5f) - 0.5f;  // spacing of floats in [0.5, 1) is 2^-24, that of subnormal halves
  } else {
    rounded = __uint_as_float((magnitude + 0x0FFFu + ((magnitude >> 13) & 1u)) & 0xFFFFE000u);
    if (rounded > 65504.0f) rounded = infinity32();
  }
  return __uint_as_float(sign | __float_as_uint(rounded));
}
#endif

// Nearest bfloat16 (ties to even), as a float.
#if defined(__CUDACC_RTC__) && __CUDA_ARCH__ >= 800
static __device__ __forceinline__ float round_to_bfloat(float x) {
  unsigned short b;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(x));
  return __uint_as_float(unsigned(b) << 16);
}
#else
static __device__ __forceinline__ float round_to_bfloat(float x) {
  const unsigned bits = __float_as_uint(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return x;
  return __uint_as_float((bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u);
}
#endif

// Element types by their code, the order of model.ITEM_BYTES. `Item`: raw bits or an integer; load(): value in the type that torch.isclose computes in;
// round(): its rounding after each operation; low(): a number just below a positive maximum, from which a filter is safe against its own roundings.
struct Narrow {
  typedef float Compute;
  static __device__ __forceinline__ float round(float x) { return x; }
  static __device__ __forceinline__ float infinity() { return infinity32(); }
  static __device__ __forceinline__ float nan() { return __int_as_float(0x7FFFFFFF); }
  static __device__ __forceinline__ float low(double x) {
    const double below = x * (1.0 - 9.5367431640625e-07);
    return below < 7.888609052210118e-31 ? 0.0f : float(below);  // 2^-100: products stay normal
  }
};
struct Wide {
  typedef double Compute;
  static __device__ __forceinline__ double round(double x) { return x; }
  static __device__ __forceinline__ double infinity() { return infinity64(); }
  static __device__ __forceinline__ double nan() { return __longlong_as_double(0x7FF8000000000000LL); }
  static __device__ __forceinline__ double low(double x) { return x < 1e-280 ? 0.0 : x * (1.0 - 1e-14); }
};
template <int Code>
struct Format;
template <>
struct Format<0> : Narrow {
  typedef unsigned Item;
  static constexpr int precision = 24, least_exponent = -126;
  static __device__ __forceinline__ float load(Item x) { return __uint_as_float(x); }
};
template <>
struct Format<1> : Narrow {
  typedef unsigned short Item;
  static constexpr int precision = 11, least_exponent = -14;
  static __device__ __forceinline__ float load(Item x) { return half_to_float(x); }
  static __device__ __forceinline__ float round(float x) { return round_to_half(x); }
};
template <>
struct Format<2> : Narrow {
  typedef unsigned short Item;
  static constexpr int precision = 8, least_exponent = -126;
  static __device__ __forceinline__ float load(Item x) { return __uint_as_float(unsigned(x) << 16); }
  static __device__ __forceinline__ float round(float x) { return round_to_bfloat(x); }
};
template <>
struct Format<3> : Wide {
  typedef Word Item;
  static constexpr int precision = 53, least_exponent = -1022;
  static __device__ __forceinline__ double load(Item x) { return __longlong_as_double((long long)x); }
};
// torch compares integers in its default dtype, float32, after an exact test for equality.
template <class T>
struct Integer : Narrow {
  typedef T Item;
  static constexpr int precision = 0, least_exponent = 0;
  static __device__ __forceinline__ float load(Item x) { return float(x); }
};
template <>
struct Format<4> : Integer<int> {};
template <>
struct Format<5> : Integer<long long> {};
template <>
struct Format<6> : Integer<unsigned char> {};

template <class F>
static __device__ __forceinline__ double to_double(typename F::Item item) {
  if constexpr (F::precision == 0) return double(item);
  else return double(F::load(item));
}

template <class F>
static __device__ __forceinline__ bool poisoned(typename F::Item item) { return item == typename F::Item(~0ULL); }

// Spacing of the format at a finite value; 0 for integers. Any finite number will do elsewhere: such elements have no error.
template <class F>
static __device__ __forceinline__ double ulp(double value) {
  if constexpr (F::precision == 0) {
    return 0.0;
  } else {
    const int biased = int((__double_as_longlong(value) >> 52) & 0x7FF);
    int exponent = biased == 0x7FF ? 0 : biased - 1023;
    if (biased == 0 || exponent < F::least_exponent) exponent = F::least_exponent;
    const int step = exponent - F::precision + 1;
    const Word bits = step < -1022 ? 1ULL << (step + 1074) : Word(step + 1023) << 52;
    return __longlong_as_double((long long)bits);
  }
}

// Quotient of numbers >= 0, as defined in statistics.py. Zeros are kept away from the division: they would take its slow path.
static __device__ __forceinline__ double ratio(double numerator, double denominator) {
  const double quotient = (numerator == 0 ? 1.0 : numerator) / (denominator == 0 ? 1.0 : denominator);
  const double value = quotient < kLimit && denominator != 0 ? quotient : kLimit;
  return numerator == 0 ? 0.0 : value;
}

constexpr Word kIndex = 0x9E3779B97F4A7C15ULL;

static __device__ __forceinline__ Word keyed(Word index) { return index * kIndex + 0xD1B54A32D192ED03ULL; }

// Word of a vector in the digest; `key` is keyed(its index).
static __device__ __forceinline__ Word mixed(Word key, Word low, Word high) {
  Word h = low ^ key;
  h = (h ^ (h >> 32)) * 0xFF51AFD7ED558CCDULL;
  h = ((h ^ (h >> 29)) + high) * 0xC4CEB9FE1A85EC53ULL;
  h = (h ^ (h >> 32)) * 0xFF51AFD7ED558CCDULL;
  return h ^ (h >> 29);
}

// 16 bytes of items, which need not be aligned.
struct Vector {
  Word low, high;
};

template <class Item>
static __device__ __forceinline__ Item item_of(const Vector &vector, int number) {
  constexpr int half = 8 / sizeof(Item);
  const Word word = number < half ? vector.low : vector.high;
  return Item(word >> (8 * sizeof(Item) * (number % half)));
}

template <class Item, bool Aligned>
static __device__ __forceinline__ Vector vector_at(const void *data, long long index) {
  if constexpr (Aligned) {
    const ulonglong2 both = static_cast<const ulonglong2 *>(data)[index];
    return Vector{both.x, both.y};
  } else {
    constexpr int half = 8 / sizeof(Item);
    const Item *items = static_cast<const Item *>(data) + index * 2 * half;
    Vector vector{0, 0};
    for (int k = 0; k < half; k++) {
      // Widened without the sign: cut to the item's own bits first.
      const Word mask = ~0ULL >> (64 - 8 * sizeof(Item));
      vector.low |= (Word(items[k]) & mask) << (8 * sizeof(Item) * k);
      vector.high |= (Word(items[half + k]) & mask) << (8 * sizeof(Item) * k);
    }
    return vector;
  }
}

// The last items of an output, fewer than a vector holds; zeros behind them.
template <class Item>
static __device__ __forceinline__ Vector rest_at(const void *data, long long index, int count) {
  constexpr int half = 8 / sizeof(Item);
  const Item *items = static_cast<const Item *>(data) + index * 2 * half;
  const Word mask = ~0ULL >> (64 - 8 * sizeof(Item));
  Vector vector{0, 0};
#pragma unroll 1
  for (int k = 0; k < count; k++) {
    const Word placed = (Word(items[k]) & mask) << (8 * sizeof(Item) * (k % half));
    if (k < half) vector.low |= placed;
    else vector.high |= placed;
  }
  return vector;
}

}  // namespace truekernel_statistics
