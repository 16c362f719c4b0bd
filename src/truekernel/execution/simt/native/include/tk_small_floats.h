// __half and __nv_bfloat16 (CUDA Math API, "Half Precision" and "Bfloat16 Precision"). Each operation rounds once, to nearest even:
// sums, products, quotients and roots of 11 or 8 bits may be computed in float and rounded again without a second error, since
// 24 >= 2*11 + 2 (Figueroa 1995); a fused multiply-add goes through rounding to odd.
#pragma once

namespace tk_detail {

#ifdef __clang__
static inline unsigned short half_bits(float x) {
  const _Float16 h = (_Float16)x;
  unsigned short bits;
  __builtin_memcpy(&bits, &h, 2);
  return bits;
}
static inline float half_value(unsigned short bits) {
  _Float16 h;
  __builtin_memcpy(&h, &bits, 2);
  return float(h);
}
#else
typedef float Float4 __attribute__((vector_size(16)));
typedef short Short8 __attribute__((vector_size(16)));
static inline unsigned short half_bits(float x) {
  return (unsigned short)__builtin_ia32_vcvtps2ph(Float4{x, 0, 0, 0}, 0)[0];
}
static inline float half_value(unsigned short bits) {
  return __builtin_ia32_vcvtph2ps(Short8{(short)bits, 0, 0, 0, 0, 0, 0, 0})[0];
}
#endif

static inline unsigned short bfloat_bits(float x) {
  const unsigned bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
static inline float bfloat_value(unsigned short bits) { return __uint_as_float(unsigned(bits) << 16); }

// To float with a sticky last bit: rounding that to 16 bits gives what rounding the double would give.
static inline float odd_float(double x) {
  const float nearest = float(x);
  if (double(nearest) == x || x != x) return nearest;
  unsigned bits = __float_as_uint(nearest);
  if (__builtin_fabs(double(nearest)) > __builtin_fabs(x)) --bits;
  return __uint_as_float(bits | 1);
}

// Rounded to 16 bits with a direction: nearest (0 = even), zero, up, down.
enum class Rounding { nearest, zero, up, down };
template <class T>
static inline T rounded(float x, Rounding mode) {
  T out = T(x);
  const float back = float(out);
  if (mode == Rounding::nearest || back == x || x != x) return out;
  const bool away = (back > x) == (x > 0);  // nearest went away from zero
  const bool wants_away = mode == Rounding::up ? x > 0 : mode == Rounding::down ? x < 0 : false;
  if (away && !wants_away) --out.bits;
  if (!away && wants_away) ++out.bits;
  return out;
}

}  // namespace tk_detail

#define TK_SMALL_FLOAT(T, encode, decode)                                                      \
  struct __attribute__((aligned(2))) T {                                                       \
    unsigned short bits;                                                                       \
    T() = default;                                                                             \
    T(float x) : bits(encode(x)) {}                                                            \
    T(double x) : bits(encode(tk_detail::odd_float(x))) {}                                     \
    T(int x) : T(double(x)) {}                                                                 \
    T(unsigned x) : T(double(x)) {}                                                            \
    T(short x) : T(float(x)) {}                                                                \
    T(unsigned short x) : T(float(x)) {}                                                       \
    T(long x) : T(double(x)) {}                                                                \
    T(unsigned long x) : T(double(x)) {}                                                       \
    T(long long x) : T(double(x)) {}                                                           \
    T(unsigned long long x) : T(double(x)) {}                                                  \
    operator float() const { return decode(bits); }                                            \
    T &operator=(float x) { bits = encode(x); return *this; }                                  \
    T &operator=(double x) { bits = encode(tk_detail::odd_float(x)); return *this; }           \
  };                                                                                           \
  static inline T operator+(const T &a, const T &b) { return T(decode(a.bits) + decode(b.bits)); }          \
  static inline T operator-(const T &a, const T &b) { return T(decode(a.bits) - decode(b.bits)); }          \
  static inline T operator*(const T &a, const T &b) { return T(decode(a.bits) * decode(b.bits)); }          \
  static inline T operator/(const T &a, const T &b) { return T(decode(a.bits) / decode(b.bits)); }          \
  static inline T &operator+=(T &a, const T &b) { return a = a + b; }                          \
  static inline T &operator-=(T &a, const T &b) { return a = a - b; }                          \
  static inline T &operator*=(T &a, const T &b) { return a = a * b; }                          \
  static inline T &operator/=(T &a, const T &b) { return a = a / b; }                          \
  static inline T &operator++(T &a) { return a = a + T(1.0f); }                                \
  static inline T &operator--(T &a) { return a = a - T(1.0f); }                                \
  static inline T operator+(const T &a) { return a; }                                          \
  static inline T operator-(const T &a) { T r = a; r.bits ^= 0x8000; return r; }               \
  static inline bool operator==(const T &a, const T &b) { return decode(a.bits) == decode(b.bits); }        \
  static inline bool operator!=(const T &a, const T &b) { return decode(a.bits) != decode(b.bits); }        \
  static inline bool operator<(const T &a, const T &b) { return decode(a.bits) < decode(b.bits); }          \
  static inline bool operator>(const T &a, const T &b) { return decode(a.bits) > decode(b.bits); }          \
  static inline bool operator<=(const T &a, const T &b) { return decode(a.bits) <= decode(b.bits); }        \
  static inline bool operator>=(const T &a, const T &b) { return decode(a.bits) >= decode(b.bits); }

TK_SMALL_FLOAT(__half, tk_detail::half_bits, tk_detail::half_value)
TK_SMALL_FLOAT(__nv_bfloat16, tk_detail::bfloat_bits, tk_detail::bfloat_value)

// Scalar functions. Special functions are computed in float or double and rounded once.
#define TK_SMALL_SCALAR(T)                                                                     \
  static inline T __hadd(T a, T b) { return a + b; }                                           \
  static inline T __hsub(T a, T b) { return a - b; }                                           \
  static inline T __hmul(T a, T b) { return a * b; }                                           \
  static inline T __hdiv(T a, T b) { return a / b; }                                           \
  static inline T __hadd_rn(T a, T b) { return a + b; }                                        \
  static inline T __hsub_rn(T a, T b) { return a - b; }                                        \
  static inline T __hmul_rn(T a, T b) { return a * b; }                                        \
  static inline T __hneg(T a) { return -a; }                                                   \
  static inline T __habs(T a) { a.bits &= 0x7fff; return a; }                                  \
  static inline T tk_sat(T a) { return T(__saturatef(float(a))); }                             \
  static inline T __hadd_sat(T a, T b) { return tk_sat(a + b); }                               \
  static inline T __hsub_sat(T a, T b) { return tk_sat(a - b); }                               \
  static inline T __hmul_sat(T a, T b) { return tk_sat(a * b); }                               \
  static inline T __hfma(T a, T b, T c) {                                                      \
    return T(tk_detail::odd_float(tk_detail::sum_sticky(double(float(a)) * double(float(b)), double(float(c))))); \
  }                                                                                            \
  static inline T __hfma_sat(T a, T b, T c) { return tk_sat(__hfma(a, b, c)); }                \
  static inline T __hfma_relu(T a, T b, T c) { const T r = __hfma(a, b, c); return float(r) > 0.0f || float(r) != float(r) ? r : T(0.0f); } \
  static inline bool __heq(T a, T b) { return a == b; }                                        \
  static inline bool __hne(T a, T b) { return float(a) < float(b) || float(a) > float(b); }    \
  static inline bool __hlt(T a, T b) { return a < b; }                                         \
  static inline bool __hle(T a, T b) { return a <= b; }                                        \
  static inline bool __hgt(T a, T b) { return a > b; }                                         \
  static inline bool __hge(T a, T b) { return a >= b; }                                        \
  static inline bool __hequ(T a, T b) { return !__hne(a, b); }                                 \
  static inline bool __hneu(T a, T b) { return a != b; }                                       \
  static inline bool __hltu(T a, T b) { return !(a >= b); }                                    \
  static inline bool __hleu(T a, T b) { return !(a > b); }                                     \
  static inline bool __hgtu(T a, T b) { return !(a <= b); }                                    \
  static inline bool __hgeu(T a, T b) { return !(a < b); }                                     \
  static inline bool __hisnan(T a) { return a != a; }                                          \
  static inline int __hisinf(T a) { return std::isinf(float(a)) ? (float(a) > 0 ? 1 : -1) : 0; } \
  static inline T __hmax(T a, T b) { return T(__builtin_fmaxf(float(a), float(b))); }          \
  static inline T __hmin(T a, T b) { return T(__builtin_fminf(float(a), float(b))); }          \
  static inline T __hmax_nan(T a, T b) { return a != a ? a : b != b ? b : __hmax(a, b); }      \
  static inline T __hmin_nan(T a, T b) { return a != a ? a : b != b ? b : __hmin(a, b); }      \
  static inline T hsqrt(T a) { return T(__builtin_sqrtf(float(a))); }                          \
  static inline T hrsqrt(T a) { return T(1.0 / sqrt(double(float(a)))); }                      \
  static inline T hrcp(T a) { return T(1.0 / double(float(a))); }                              \
  static inline T hexp(T a) { return T(exp(double(float(a)))); }                               \
  static inline T hexp2(T a) { return T(exp2(double(float(a)))); }                             \
  static inline T hexp10(T a) { return T(pow(10.0, double(float(a)))); }                       \
  static inline T hlog(T a) { return T(log(double(float(a)))); }                               \
  static inline T hlog2(T a) { return T(log2(double(float(a)))); }                             \
  static inline T hlog10(T a) { return T(log10(double(float(a)))); }                           \
  static inline T hsin(T a) { return T(sin(double(float(a)))); }                               \
  static inline T hcos(T a) { return T(cos(double(float(a)))); }                               \
  static inline T htanh(T a) { return T(tanh(double(float(a)))); }                             \
  static inline T htanh_approx(T a) { return T(__tanhf(float(a))); }                           \
  static inline T hfloor(T a) { return T(__builtin_floorf(float(a))); }                        \
  static inline T hceil(T a) { return T(__builtin_ceilf(float(a))); }                          \
  static inline T htrunc(T a) { return T(__builtin_truncf(float(a))); }                        \
  static inline T hrint(T a) { return T(__builtin_rintf(float(a))); }
TK_SMALL_SCALAR(__half)
TK_SMALL_SCALAR(__nv_bfloat16)

#ifdef __clang__
#define TK_CHECKED_PAIR_COPY(T2)              \
  T2(const T2 &v) : x(v.x), y(v.y) {}         \
  T2 &operator=(const T2 &v) {                \
    x = v.x, y = v.y;                         \
    return *this;                             \
  }
#else
#define TK_CHECKED_PAIR_COPY(T2)
#endif
#define TK_SMALL_PAIR(T, T2)                                                                   \
  struct __attribute__((aligned(4))) T2 {                                                      \
    T x, y;                                                                                    \
    T2() = default;                                                                            \
    T2(const T &a, const T &b) : x(a), y(b) {}                                                 \
    TK_CHECKED_PAIR_COPY(T2)                                                                   \
  };                                                                                           \
  static inline T2 operator+(const T2 &a, const T2 &b) { return T2(a.x + b.x, a.y + b.y); }    \
  static inline T2 operator-(const T2 &a, const T2 &b) { return T2(a.x - b.x, a.y - b.y); }    \
  static inline T2 operator*(const T2 &a, const T2 &b) { return T2(a.x * b.x, a.y * b.y); }    \
  static inline T2 operator/(const T2 &a, const T2 &b) { return T2(a.x / b.x, a.y / b.y); }    \
  static inline T2 operator-(const T2 &a) { return T2(-a.x, -a.y); }                           \
  static inline T2 &operator+=(T2 &a, const T2 &b) { return a = a + b; }                       \
  static inline T2 &operator-=(T2 &a, const T2 &b) { return a = a - b; }                       \
  static inline T2 &operator*=(T2 &a, const T2 &b) { return a = a * b; }                       \
  static inline T2 &operator/=(T2 &a, const T2 &b) { return a = a / b; }                       \
  static inline bool operator==(const T2 &a, const T2 &b) { return a.x == b.x && a.y == b.y; } \
  static inline bool operator!=(const T2 &a, const T2 &b) { return a.x != b.x && a.y != b.y; } \
  static inline T2 __hadd2(T2 a, T2 b) { return a + b; }                                       \
  static inline T2 __hsub2(T2 a, T2 b) { return a - b; }                                       \
  static inline T2 __hmul2(T2 a, T2 b) { return a * b; }                                       \
  static inline T2 __h2div(T2 a, T2 b) { return a / b; }                                       \
  static inline T2 __hadd2_rn(T2 a, T2 b) { return a + b; }                                    \
  static inline T2 __hsub2_rn(T2 a, T2 b) { return a - b; }                                    \
  static inline T2 __hmul2_rn(T2 a, T2 b) { return a * b; }                                    \
  static inline T2 __hneg2(T2 a) { return -a; }

#define TK_PAIR1(T2, name2, name1) \
  static inline T2 name2(T2 a) { return T2(name1(a.x), name1(a.y)); }
#define TK_PAIR2(T2, name2, name1) \
  static inline T2 name2(T2 a, T2 b) { return T2(name1(a.x, b.x), name1(a.y, b.y)); }
#define TK_PAIR3(T2, name2, name1) \
  static inline T2 name2(T2 a, T2 b, T2 c) { return T2(name1(a.x, b.x, c.x), name1(a.y, b.y, c.y)); }
// Comparisons give 1.0 or 0.0 in each half; the __hb forms one truth value for both.
#define TK_PAIR_COMPARE(T, T2, name)                                                           \
  static inline T2 __h##name##2(T2 a, T2 b) {                                                  \
    return T2(T(__h##name(a.x, b.x) ? 1.0f : 0.0f), T(__h##name(a.y, b.y) ? 1.0f : 0.0f));     \
  }                                                                                            \
  static inline bool __hb##name##2(T2 a, T2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); }
#define TK_SMALL_PAIR_FUNCTIONS(T, T2)                                                         \
  TK_PAIR1(T2, __habs2, __habs)                                                                \
  TK_PAIR2(T2, __hmax2, __hmax) TK_PAIR2(T2, __hmin2, __hmin)                                  \
  TK_PAIR2(T2, __hmax2_nan, __hmax_nan) TK_PAIR2(T2, __hmin2_nan, __hmin_nan)                  \
  TK_PAIR2(T2, __hadd2_sat, __hadd_sat) TK_PAIR2(T2, __hsub2_sat, __hsub_sat)                  \
  TK_PAIR2(T2, __hmul2_sat, __hmul_sat)                                                        \
  TK_PAIR3(T2, __hfma2, __hfma) TK_PAIR3(T2, __hfma2_sat, __hfma_sat)                          \
  TK_PAIR3(T2, __hfma2_relu, __hfma_relu)                                                      \
  TK_PAIR1(T2, h2sqrt, hsqrt) TK_PAIR1(T2, h2rsqrt, hrsqrt) TK_PAIR1(T2, h2rcp, hrcp)          \
  TK_PAIR1(T2, h2exp, hexp) TK_PAIR1(T2, h2exp2, hexp2) TK_PAIR1(T2, h2exp10, hexp10)          \
  TK_PAIR1(T2, h2log, hlog) TK_PAIR1(T2, h2log2, hlog2) TK_PAIR1(T2, h2log10, hlog10)          \
  TK_PAIR1(T2, h2sin, hsin) TK_PAIR1(T2, h2cos, hcos) TK_PAIR1(T2, h2tanh, htanh)              \
  TK_PAIR1(T2, h2floor, hfloor) TK_PAIR1(T2, h2ceil, hceil) TK_PAIR1(T2, h2trunc, htrunc)      \
  TK_PAIR1(T2, h2rint, hrint)                                                                  \
  TK_PAIR_COMPARE(T, T2, eq) TK_PAIR_COMPARE(T, T2, ne) TK_PAIR_COMPARE(T, T2, lt)             \
  TK_PAIR_COMPARE(T, T2, le) TK_PAIR_COMPARE(T, T2, gt) TK_PAIR_COMPARE(T, T2, ge)             \
  static inline T2 __hisnan2(T2 a) {                                                           \
    return T2(T(__hisnan(a.x) ? 1.0f : 0.0f), T(__hisnan(a.y) ? 1.0f : 0.0f));                 \
  }                                                                                            \
  static inline float __low2float(T2 a) { return float(a.x); }                                 \
  static inline float __high2float(T2 a) { return float(a.y); }
TK_SMALL_PAIR(__half, __half2)
TK_SMALL_PAIR(__nv_bfloat16, __nv_bfloat162)
TK_SMALL_PAIR_FUNCTIONS(__half, __half2)
TK_SMALL_PAIR_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)

typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
struct __half_raw {
  unsigned short x;
};
typedef struct {
  unsigned short x;
} __nv_bfloat16_raw;

#define TK_SMALL_REINTERPRET(T, stem)                                                          \
  static inline unsigned short __##stem##_as_ushort(T a) { return a.bits; }                    \
  static inline short __##stem##_as_short(T a) { return short(a.bits); }                       \
  static inline T __ushort_as_##stem(unsigned short bits) { T out; out.bits = bits; return out; } \
  static inline T __short_as_##stem(short bits) { T out; out.bits = (unsigned short)bits; return out; }
TK_SMALL_REINTERPRET(__half, half)
TK_SMALL_REINTERPRET(__nv_bfloat16, bfloat16)

#define TK_SMALL_CONVERT(T, T2, stem)                                                          \
  static inline float __##stem##2float(T a) { return float(a); }                               \
  static inline T __float2##stem(float a) { return T(a); }                                     \
  static inline T __double2##stem(double a) { return T(a); }                                   \
  static inline T __float2##stem##_rn(float a) { return T(a); }                                \
  static inline T __float2##stem##_rz(float a) { return tk_detail::rounded<T>(a, tk_detail::Rounding::zero); } \
  static inline T __float2##stem##_ru(float a) { return tk_detail::rounded<T>(a, tk_detail::Rounding::up); }   \
  static inline T __float2##stem##_rd(float a) { return tk_detail::rounded<T>(a, tk_detail::Rounding::down); } \
  static inline int __##stem##2int_rn(T a) { return __float2int_rn(float(a)); }                \
  static inline int __##stem##2int_rz(T a) { return __float2int_rz(float(a)); }                \
  static inline int __##stem##2int_ru(T a) { return __float2int_ru(float(a)); }                \
  static inline int __##stem##2int_rd(T a) { return __float2int_rd(float(a)); }                \
  static inline unsigned __##stem##2uint_rn(T a) { return __float2uint_rn(float(a)); }         \
  static inline unsigned __##stem##2uint_rz(T a) { return __float2uint_rz(float(a)); }         \
  static inline T __int2##stem##_rn(int a) { return T(a); }                                    \
  static inline T __uint2##stem##_rn(unsigned a) { return T(a); }                              \
  static inline T __short2##stem##_rn(short a) { return T(a); }                                \
  static inline T __ushort2##stem##_rn(unsigned short a) { return T(a); }                      \
  static inline T __ll2##stem##_rn(long long a) { return T(a); }                               \
  static inline T2 __float2##stem##2_rn(float a) { return T2(T(a), T(a)); }                    \
  static inline T2 __floats2##stem##2_rn(float a, float b) { return T2(T(a), T(b)); }          \
  static inline T2 __float22##stem##2_rn(float2 a) { return T2(T(a.x), T(a.y)); }              \
  static inline float2 __##stem##22float2(T2 a) { return {float(a.x), float(a.y)}; }           \
  static inline T2 __##stem##2##stem##2(T a) { return T2(a, a); }
TK_SMALL_CONVERT(__half, __half2, half)
TK_SMALL_CONVERT(__nv_bfloat16, __nv_bfloat162, bfloat16)

#define TK_SMALL_SHUFFLE(T, T2, stem, stem2)                                                   \
  static inline T __low2##stem(T2 a) { return a.x; }                                           \
  static inline T __high2##stem(T2 a) { return a.y; }                                          \
  static inline T2 __low2##stem2(T2 a) { return T2(a.x, a.x); }                                \
  static inline T2 __high2##stem2(T2 a) { return T2(a.y, a.y); }                               \
  static inline T2 __lowhigh2highlow(T2 a) { return T2(a.y, a.x); }                            \
  static inline T2 __lows2##stem2(T2 a, T2 b) { return T2(a.x, b.x); }                         \
  static inline T2 __highs2##stem2(T2 a, T2 b) { return T2(a.y, b.y); }
TK_SMALL_SHUFFLE(__half, __half2, half, half2)
TK_SMALL_SHUFFLE(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162)
static inline __half2 __halves2half2(__half a, __half b) { return __half2(a, b); }
static inline __half2 make_half2(__half a, __half b) { return __half2(a, b); }
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7C00U)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7FFFU)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000U)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3C00U)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7BFFU)
#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7F80U)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000U)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3F80U)
