// Inputs of a case on a device, with the bits that truekernel/cases/recipes.py and inputs.py make on a CPU: integers, table look-ups and exactly rounded
// + - * / in float64. Compile with contraction off (-fmad=false), subnormals kept and exact division.
//
// Generator: Philox4x32 with 10 rounds (J. Salmon, M. Moraes, R. Dror, D. Shaw, SC'11); block b of a stream gives the words 4b to 4b + 3.

namespace truekernel_inputs {

typedef unsigned long long Word;

// Codes of recipes, in the order of truekernel/cases/device.py.
enum Recipe { kUniform, kSigned, kNormal, kHeavy, kSparse, kConstant, kTies, kIntegers, kRamp, kSubnormal, kSpecial, kOnes, kZeros, kNear, kDecades, kShort, kDust, kWhole };
// Codes of element types, in the order of model.ITEM_BYTES.
enum Dtype { kF32, kF16, kBf16, kF64, kI32, kI64, kU8 };
enum Flags { kKeepsNonfinite = 1, kAbsolute = 2, kBounded = 4, kScaled = 8 };
constexpr int kCells = 1024;
constexpr int kThreads = 256;

struct Block {
  unsigned word[4];
};

static __device__ __forceinline__ Block philox(Word block, Word stream, Word seed) {
  unsigned c0 = unsigned(block), c1 = unsigned(block >> 32), c2 = unsigned(stream), c3 = unsigned(stream >> 32);
  unsigned k0 = unsigned(seed), k1 = unsigned(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const Word p0 = Word(c0) * 0xD2511F53u, p1 = Word(c2) * 0xCD9E8D57u;
    c0 = unsigned(p1 >> 32) ^ c1 ^ k0;
    c1 = unsigned(p1);
    c2 = unsigned(p0 >> 32) ^ c3 ^ k1;
    c3 = unsigned(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return Block{{c0, c1, c2, c3}};
}

static __device__ __forceinline__ double unit(unsigned word) { return (word >> 8) * 5.9604644775390625e-08; }  // 2^-24

static __device__ __forceinline__ double normal(unsigned word, const double *__restrict__ knots) {
  const unsigned cell = (word >> 1) & (kCells - 1);
  const double fraction = (word >> 11) * 4.76837158203125e-07;  // 2^-21
  const double left = knots[cell];
  const double size = left + (knots[cell + 1] - left) * fraction;
  return word & 1 ? -size : size;
}

static __device__ __forceinline__ bool is_finite(double x) { return fabs(x) < __longlong_as_double(0x7FF0000000000000LL); }

// Steps of the subnormal numbers of a type (less the last), and the least of them.
static __device__ __forceinline__ double subnormal(unsigned word, int dtype) {
  long long steps = 1LL << 23;
  double least = 1.401298464324817e-45;  // 2^-149
  if (dtype == kF16) steps = 1LL << 10, least = 5.9604644775390625e-08;
  if (dtype == kBf16) steps = 1LL << 7, least = 9.183549615799121e-41;  // 2^-133
  if (dtype == kF64) steps = 1LL << 52, least = __longlong_as_double(1);
  const double count = double((long long)(word >> 1) % (steps - 1) + 1);
  return (word & 1 ? -1.0 : 1.0) * count * least;
}

static __device__ __forceinline__ double power_of_two(int exponent) { return __longlong_as_double((long long)(1023 + exponent) << 52); }

// Spacing of the numbers from 1 on, and how many powers of two below 1 there are, of a type.
static __device__ __forceinline__ double spacing(int dtype) {
  return power_of_two(dtype == kF16 ? -10 : dtype == kBf16 ? -7 : dtype == kF64 ? -52 : -23);
}
// The greatest number whose square is less than a number of spacings in 1.
static __device__ __forceinline__ double short_steps(int dtype) { return dtype == kF16 ? 31.0 : dtype == kBf16 ? 11.0 : dtype == kF64 ? 67108863.0 : 2896.0; }
static __device__ __forceinline__ int decades(int dtype) { return dtype == kF16 ? 25 : dtype == kBf16 ? 134 : dtype == kF64 ? 1023 : 150; }

static __device__ __forceinline__ double drawn(int recipe, int dtype, unsigned word, unsigned other, Word element, Word count,
                                               const double *__restrict__ knots) {
  switch (recipe) {
    case kUniform: return unit(word);
    case kSigned: return (word >> 8) * 1.1920928955078125e-07 - 1.0;  // 2^-23
    case kNormal: return normal(word, knots);
    case kHeavy: return normal(word, knots) / (unit(other) + 0.00390625);
    case kSparse: return other % 5 == 0 ? normal(word, knots) : 0.0;
    case kConstant: return (1 + word % 8) / 4.0;
    case kTies: return double(word % 9) / 4.0 - 1.0;
    case kIntegers: return double(word % 5) - 2.0;
    case kRamp: return (double(element) + unit(word)) / double(count);
    case kSubnormal: return subnormal(word, dtype);
    case kSpecial: {
      const unsigned pick = other % 96;
      if (pick > 2) return normal(word, knots);
      return __longlong_as_double(pick == 0 ? 0x7FF8000000000000LL : pick == 1 ? 0x7FF0000000000000LL : (long long)0xFFF0000000000000ULL);
    }
    case kNear: return (double(word % 9) / 4.0 - 1.0) * (1.0 + double(other % 4) * spacing(dtype));
    case kShort: return (word & 1 ? -1.0 : 1.0) * (1.0 + short_steps(dtype) * spacing(dtype));
    case kDust: {  // `other` is that of the pair
      const double size = (other >> 3) % 4 + 1.0;
      return other % 8 == 0 ? (element % 2 ? -size : size) / 4.0 : -size * (spacing(dtype) * spacing(dtype));
    }
    case kDecades: return normal(word, knots) * (other & 1 ? 1.0 : power_of_two(-int((other >> 1) % decades(dtype))));
    case kOnes: return 1.0;
    default: return 0.0;
  }
}

static __device__ __forceinline__ double into_domain(double value, int flags, double low, double high) {
  const bool special = !is_finite(value);
  if (special && !(flags & kKeepsNonfinite)) value = 0.0;
  if (flags & kAbsolute) value = fabs(value);
  if ((flags & kBounded) && is_finite(value)) value = value < low ? low : value > high ? high : value;
  return value;
}

// Bits of a value in a floating-point type: rounded to float32 first, then to the narrower type, ties to even; NaN is the positive quiet one.
static __device__ __forceinline__ Word bits_of(double value, int dtype) {
  const bool nan = value != value;
  if (dtype == kF64) return nan ? 0x7FF8000000000000ULL : Word(__double_as_longlong(value));
  const unsigned bits = nan ? 0x7FC00000u : __float_as_uint(float(value));
  if (dtype == kF32) return bits;
  if (dtype == kBf16) return nan ? 0x7FC0u : ((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16) & 0xFFFFu;
  const unsigned sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  if (nan) return 0x7E00u;
  if (magnitude < 0x38800000u) {  // 2^-14; spacing of floats in [0.5, 1) is 2^-24, that of subnormal halves
    return sign | (__float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3F000000u);
  }
  const unsigned half = ((magnitude + 0x0FFFu + ((magnitude >> 13) & 1u)) >> 13) - (112u << 10);
  return sign | (half < 0x7C00u ? half : 0x7C00u);
}

static __device__ __forceinline__ void store(void *output, Word first, int present, const Word *items, int dtype) {
  const int size = dtype == kF64 || dtype == kI64 ? 8 : dtype == kU8 ? 1 : dtype == kF16 || dtype == kBf16 ? 2 : 4;
  char *at = static_cast<char *>(output) + first * size;
  if (present == 4) {
    if (size == 4) {
      *reinterpret_cast<uint4 *>(at) = make_uint4(unsigned(items[0]), unsigned(items[1]), unsigned(items[2]), unsigned(items[3]));
    } else if (size == 2) {
      *reinterpret_cast<Word *>(at) = items[0] | items[1] << 16 | items[2] << 32 | items[3] << 48;
    } else if (size == 1) {
      *reinterpret_cast<unsigned *>(at) = unsigned(items[0] | items[1] << 8 | items[2] << 16 | items[3] << 24);
    } else {
      reinterpret_cast<ulonglong2 *>(at)[0] = make_ulonglong2(items[0], items[1]);
      reinterpret_cast<ulonglong2 *>(at)[1] = make_ulonglong2(items[2], items[3]);
    }
    return;
  }
  for (int k = 0; k < present; k++) {
    if (size == 4) reinterpret_cast<unsigned *>(at)[k] = unsigned(items[k]);
    else if (size == 2) reinterpret_cast<unsigned short *>(at)[k] = (unsigned short)items[k];
    else if (size == 1) reinterpret_cast<unsigned char *>(at)[k] = (unsigned char)items[k];
    else reinterpret_cast<Word *>(at)[k] = items[k];
  }
}

}  // namespace truekernel_inputs

// `count` elements at `output` (16-byte aligned), from the streams `stream` and, for recipes that look at two words, `other`. A value is drawn * factor + offset, then, where
// scaled, * again + shift, then brought into the domain. Whole numbers: lowest + a number below `span`. With `outside` nothing is written but a 1 there, where a finite
// value before the domain is not between low and high.
extern "C" __global__ void __launch_bounds__(256)
    tk_draw(void *output, unsigned long long count, int recipe, int dtype, unsigned long long seed, unsigned long long stream,
            unsigned long long other, const double *__restrict__ knots, double factor, double offset, double again, double shift, int flags,
            double low, double high, unsigned long long span, long long lowest, int *outside) {
  using namespace truekernel_inputs;
  const Word blocks = (count + 3) / 4, stride = Word(gridDim.x) * kThreads;
  const bool two = recipe == kHeavy || recipe == kSparse || recipe == kSpecial || recipe == kNear || recipe == kDecades ||
                   recipe == kDust;
  for (Word b = Word(blockIdx.x) * kThreads + threadIdx.x; b < blocks; b += stride) {
    const Block first = philox(recipe == kConstant ? 0 : b, stream, seed);
    Block second = first;
    if (two) second = philox(b, other, seed);
    Word items[4];
    bool beyond = false;
    const int present = count - 4 * b < 4 ? int(count - 4 * b) : 4;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      if (recipe == kWhole) {
        items[k] = Word((long long)((first.word[k] * span) >> 32) + lowest);
        continue;
      }
      const unsigned word = recipe == kConstant ? first.word[0] : first.word[k];
      double value = drawn(recipe, dtype, word, second.word[recipe == kDust ? k & ~1 : k], 4 * b + k, count, knots);
      value = value * factor + offset;
      if (flags & kScaled) value = value * again + shift;
      beyond |= k < present && is_finite(value) && (value < low || value > high);
      items[k] = bits_of(into_domain(value, flags, low, high), dtype);
    }
    if (outside == nullptr) store(output, 4 * b, present, items, dtype);
    else if (beyond) *outside = 1;
  }
}
