// Math functions and intrinsics that a host's libm lacks or rounds otherwise (CUDA Math API; CUDA C++ Programming Guide,
// "Mathematical Functions").
//
// Fast intrinsics are less exact on a GPU than the functions they stand for: errors of up to 2 ulp come from its special function unit.
// Here they are computed from the formula that the guide gives, each special-function step chopped to kSpecialBits bits. So
// they differ from the exact forms in the last bits as they do on a GPU, though not in the very same bits.
#pragma once

namespace tk_detail {

constexpr int kSpecialBits = 23;

// Rounds toward zero to kSpecialBits bits; also flushes subnormals, like the special function unit.
static inline float chopped(double exact) {
  const float nearest = float(exact);
  unsigned bits = __float_as_uint(nearest);
  if ((bits & 0x7f800000u) == 0x7f800000u) return nearest;
  if ((bits & 0x7f800000u) == 0) return __uint_as_float(bits & 0x80000000u);
  if (__builtin_fabs(double(nearest)) > __builtin_fabs(exact)) --bits;
  return __uint_as_float(bits & ~((1u << (24 - kSpecialBits)) - 1));
}
static inline float special_exp2(float x) { return chopped(exp2(double(x))); }
// Near 1 the special function unit's logarithm has an absolute error of 2^-22, elsewhere a relative one.
static inline float special_log2(float x) {
  const double exact = log2(double(x));
  return __builtin_fabs(exact) < 0.5 ? float(__builtin_trunc(exact * 4194304.0) / 4194304.0) : chopped(exact);
}
static inline float special_reciprocal(float x) { return chopped(1.0 / double(x)); }

}  // namespace tk_detail

// libc keeps these names for itself.
#define __expf tk_fast_expf
#define __exp10f tk_fast_exp10f
#define __logf tk_fast_logf
#define __log2f tk_fast_log2f
#define __log10f tk_fast_log10f
#define __powf tk_fast_powf
#define __sinf tk_fast_sinf
#define __cosf tk_fast_cosf
#define __tanf tk_fast_tanf
#define __sincosf tk_fast_sincosf
#define __tanhf tk_fast_tanhf
static inline float __expf(float x) { return tk_detail::special_exp2(x * 1.44269504f); }
static inline float __exp10f(float x) { return tk_detail::special_exp2(x * 3.32192809f); }
static inline float __log2f(float x) { return tk_detail::special_log2(x); }
static inline float __logf(float x) { return tk_detail::special_log2(x) * 0.693147181f; }
static inline float __log10f(float x) { return tk_detail::special_log2(x) * 0.301029996f; }
static inline float __powf(float x, float y) { return tk_detail::special_exp2(y * tk_detail::special_log2(x)); }
// Absolute error 2^-21 within [-pi, pi], larger outside: the argument is reduced in single precision.
static inline float __sinf(float x) {
  const float reduced = x - 6.28318548f * __builtin_rintf(x * 0.159154937f);
  return float(__builtin_trunc(sin(double(reduced)) * 2097152.0) / 2097152.0);
}
static inline float __cosf(float x) {
  const float reduced = x - 6.28318548f * __builtin_rintf(x * 0.159154937f);
  return float(__builtin_trunc(cos(double(reduced)) * 2097152.0) / 2097152.0);
}
static inline float __tanf(float x) { return __sinf(x) * tk_detail::special_reciprocal(__cosf(x)); }
static inline void __sincosf(float x, float *s, float *c) {
  *s = __sinf(x);
  *c = __cosf(x);
}
static inline float __tanhf(float x) { return tk_detail::chopped(tanh(double(x))); }
static inline float __fdividef(float x, float y) {
  if (__builtin_fabsf(y) > 0x1p126f && __builtin_fabsf(y) <= 0x1.fffffep127f) return x * 0.0f;
  return x * tk_detail::special_reciprocal(y);
}
static inline float fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x) { return x >= 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

// Single-precision reciprocal square root: 2 ulp on a GPU.
static inline float rsqrtf(float x) { return x == 0.0f || x < 0x1p-126f ? float(1.0 / sqrt(double(x))) : tk_detail::chopped(1.0 / sqrt(double(x))); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline float __frsqrt_rn(float x) { return float(1.0 / sqrt(double(x))); }

namespace tk_detail {

// Exact sum or product as nearest value plus what rounding lost: tells directed rounding which way to step.
template <class T>
static inline T next_up(T x) {
  return std::nextafter(x, std::numeric_limits<T>::infinity());
}
template <class T>
static inline T next_down(T x) {
  return std::nextafter(x, -std::numeric_limits<T>::infinity());
}
// `nearest` is the rounded value of an exact number; `rest`: sign of exact - nearest.
template <int Mode, class T>
static inline T directed(T nearest, T rest) {
  if (!(rest != 0) || nearest != nearest) return nearest;
  constexpr int up = 1, down = -1;
  int direction = Mode;  // 0 = toward zero
  if (Mode == 0) direction = nearest > 0 ? down : up;
  if (std::isinf(nearest)) {
    const bool away = (nearest > 0) == (direction == up);
    return away ? nearest : std::copysign(std::numeric_limits<T>::max(), nearest);
  }
  if (direction == up && rest > 0) return next_up(nearest);
  if (direction == down && rest < 0) return next_down(nearest);
  return nearest;
}
template <int Mode>
static inline float to_float(double exact) {
  const float nearest = float(exact);
  return directed<Mode>(nearest, std::isinf(nearest) && !std::isinf(exact) ? -nearest : float(exact > nearest) - float(exact < nearest));
}
// Float operations are exact enough in double: sums and products of floats lose nothing that decides a direction but the sticky bit.
static inline double sum_sticky(double a, double b) {
  const double sum = a + b, other = sum - a, rest = (a - (sum - other)) + (b - other);
  if (rest == 0 || rest != rest || std::isinf(sum)) return sum;
  long long bits = __double_as_longlong(sum);
  if (bits & 1) return sum;
  return __longlong_as_double((rest > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

}  // namespace tk_detail

#define TK_DIRECTED(suffix, mode)                                                                                      \
  static inline float __fadd_##suffix(float a, float b) { return tk_detail::to_float<mode>(tk_detail::sum_sticky(a, b)); }  \
  static inline float __fsub_##suffix(float a, float b) { return tk_detail::to_float<mode>(tk_detail::sum_sticky(a, -double(b))); } \
  static inline float __fmul_##suffix(float a, float b) { return tk_detail::to_float<mode>(double(a) * double(b)); }   \
  static inline float __fdiv_##suffix(float a, float b) {                                                             \
    const float q = a / b;                                                                                             \
    const double rest = __builtin_fma(-double(q), double(b), double(a));                                               \
    return tk_detail::directed<mode>(q, float((rest > 0) - (rest < 0)) * (b < 0 ? -1.0f : 1.0f));                      \
  }                                                                                                                    \
  static inline float __frcp_##suffix(float a) { return __fdiv_##suffix(1.0f, a); }                                    \
  static inline float __fsqrt_##suffix(float a) {                                                                      \
    const float root = __builtin_sqrtf(a);                                                                             \
    const double rest = double(a) - double(root) * double(root);                                                       \
    return tk_detail::directed<mode>(root, float((rest > 0) - (rest < 0)));                                            \
  }                                                                                                                    \
  static inline float __fmaf_##suffix(float a, float b, float c) {                                                     \
    return tk_detail::to_float<mode>(tk_detail::sum_sticky(double(a) * double(b), c));                                 \
  }                                                                                                                    \
  static inline float __double2float_##suffix(double x) { return tk_detail::to_float<mode>(x); }                       \
  static inline float __int2float_##suffix(int x) { return tk_detail::to_float<mode>(x); }                             \
  static inline float __uint2float_##suffix(unsigned x) { return tk_detail::to_float<mode>(x); }
TK_DIRECTED(rz, 0)
TK_DIRECTED(ru, 1)
TK_DIRECTED(rd, -1)
#undef TK_DIRECTED

// To nearest. The volatile-free identity keeps a compiler that may contract a*b+c from doing it here: CUDA promises no fusing.
namespace tk_detail {
static inline float kept(float x) {
  __asm__("" : "+x"(x));
  return x;
}
static inline double kept(double x) {
  __asm__("" : "+x"(x));
  return x;
}
}  // namespace tk_detail
static inline float __fadd_rn(float a, float b) { return tk_detail::kept(a + b); }
static inline float __fsub_rn(float a, float b) { return tk_detail::kept(a - b); }
static inline float __fmul_rn(float a, float b) { return tk_detail::kept(a * b); }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __frcp_rn(float a) { return 1.0f / a; }
static inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double __dadd_rn(double a, double b) { return tk_detail::kept(a + b); }
static inline double __dsub_rn(double a, double b) { return tk_detail::kept(a - b); }
static inline double __dmul_rn(double a, double b) { return tk_detail::kept(a * b); }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __drcp_rn(double a) { return 1.0 / a; }
static inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }
static inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float __double2float_rn(double x) { return float(x); }
static inline float __int2float_rn(int x) { return float(x); }
static inline float __uint2float_rn(unsigned x) { return float(x); }
static inline float __ll2float_rn(long long x) { return float(x); }
static inline float __ull2float_rn(unsigned long long x) { return float(x); }
static inline double __int2double_rn(int x) { return x; }
static inline double __uint2double_rn(unsigned x) { return x; }
static inline double __ll2double_rn(long long x) { return double(x); }
static inline double __ull2double_rn(unsigned long long x) { return double(x); }

// To integer: out of range saturates; NaN is 0 for 32 bits and the sign bit for 64 (PTX ISA, cvt).
namespace tk_detail {
template <class Integer>
TK_GPU_RULES static inline Integer saturated(double x) {
  if (x != x) return sizeof(Integer) == 8 ? Integer(1ull << 63) : Integer(0);
  if (x <= double(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::min();
  if (x >= double(std::numeric_limits<Integer>::max())) return std::numeric_limits<Integer>::max();
  return Integer(x);
}
}  // namespace tk_detail
#define TK_TO_INTEGER(from, type, name)                                                                                \
  static inline type __##from##2##name##_rn(from x) { return tk_detail::saturated<type>(__builtin_rint(double(x))); }  \
  static inline type __##from##2##name##_rz(from x) { return tk_detail::saturated<type>(__builtin_trunc(double(x))); } \
  static inline type __##from##2##name##_ru(from x) { return tk_detail::saturated<type>(__builtin_ceil(double(x))); }  \
  static inline type __##from##2##name##_rd(from x) { return tk_detail::saturated<type>(__builtin_floor(double(x))); }
TK_TO_INTEGER(float, int, int)
TK_TO_INTEGER(float, unsigned, uint)
TK_TO_INTEGER(float, long long, ll)
TK_TO_INTEGER(float, unsigned long long, ull)
TK_TO_INTEGER(double, int, int)
TK_TO_INTEGER(double, unsigned, uint)
TK_TO_INTEGER(double, long long, ll)
TK_TO_INTEGER(double, unsigned long long, ull)
#undef TK_TO_INTEGER

// Functions that libm does not have.
#ifndef _GNU_SOURCE
extern "C" void sincosf(float, float *, float *) noexcept;
extern "C" void sincos(double, double *, double *) noexcept;
#endif
namespace tk_detail {
constexpr double kPi = 3.14159265358979323846;
static inline double sine_of_half_turns(double x) {
  if (std::isinf(x)) return __builtin_nan("");
  const double rest = x - 2.0 * __builtin_rint(x * 0.5);  // exact, within [-1, 1]
  if (rest == 0.0 || __builtin_fabs(rest) == 1.0) return std::copysign(0.0, x);
  if (__builtin_fabs(rest) <= 0.25) return sin(kPi * rest);
  if (rest > 0.0) return rest < 0.75 ? cos(kPi * (0.5 - rest)) : sin(kPi * (1.0 - rest));
  return rest > -0.75 ? -cos(kPi * (0.5 + rest)) : -sin(kPi * (1.0 + rest));
}
static inline double cosine_of_half_turns(double x) {
  if (std::isinf(x)) return __builtin_nan("");
  const double rest = __builtin_fabs(x - 2.0 * __builtin_rint(x * 0.5));
  if (rest == 0.5) return 0.0;
  if (rest <= 0.25) return cos(kPi * rest);
  return rest < 0.75 ? sin(kPi * (0.5 - rest)) : -cos(kPi * (1.0 - rest));
}
}  // namespace tk_detail
static inline double sinpi(double x) { return tk_detail::sine_of_half_turns(x); }
static inline double cospi(double x) { return tk_detail::cosine_of_half_turns(x); }
static inline float sinpif(float x) { return float(tk_detail::sine_of_half_turns(x)); }
static inline float cospif(float x) { return float(tk_detail::cosine_of_half_turns(x)); }
static inline void sincospif(float x, float *s, float *c) {
  *s = sinpif(x);
  *c = cospif(x);
}
static inline void sincospi(double x, double *s, double *c) {
  *s = sinpi(x);
  *c = cospi(x);
}
static inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
static inline float normcdff(float x) { return float(normcdf(double(x))); }
static inline double erfcx(double x) {
  if (x < 26.0) return exp(x * x) * erfc(x);
  // Continued fraction (Abramowitz and Stegun 7.1.14), far beyond where few terms are enough.
  const double square = x * x;
  return 0.56418958354775628695 / x * (1.0 - 0.5 / square + 0.75 / (square * square) - 1.875 / (square * square * square));
}
static inline float erfcxf(float x) { return float(erfcx(double(x))); }
namespace tk_detail {
// Inverse of the error function by Newton's method from Giles' single-precision start (GPU Computing Gems, 2011).
static inline double inverse_error_function(double y) {
  if (y <= -1.0 || y >= 1.0) return y == 1.0 ? __builtin_inf() : y == -1.0 ? -__builtin_inf() : __builtin_nan("");
  if (y == 0.0) return y;
  double w = -log((1.0 - y) * (1.0 + y)), x;
  if (w < 5.0) {
    w -= 2.5;
    x = 1.50140941 + w * (0.246640727 + w * (-0.00417768164 + w * (-0.00125372503 + w * 0.00021858087)));
  } else {
    w = sqrt(w) - 3.0;
    x = 2.83297682 + w * (1.00167406 + w * (0.00943887047 + w * (-0.0076224613 + w * 0.00573950773)));
  }
  x *= y;
  for (int i = 0; i < 4; ++i) {
    const double error = y < 0.5 && y > -0.5 ? erf(x) - y : y > 0 ? (1.0 - y) - erfc(x) : erfc(-x) - (1.0 + y);
    x -= error * 0.88622692545275801365 * exp(x * x);
  }
  return x;
}
}  // namespace tk_detail
static inline double erfinv(double y) { return tk_detail::inverse_error_function(y); }
static inline float erfinvf(float y) { return float(tk_detail::inverse_error_function(y)); }
static inline double normcdfinv(double p) { return 1.41421356237309504880 * erfinv(2.0 * p - 1.0); }
static inline float normcdfinvf(float p) { return float(normcdfinv(double(p))); }
static inline double rcbrt(double x) { return 1.0 / cbrt(x); }
static inline float rcbrtf(float x) { return float(1.0 / cbrt(double(x))); }
static inline double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
static inline float rhypotf(float x, float y) { return float(1.0 / hypot(double(x), double(y))); }
static inline float norm3df(float a, float b, float c) {
  return float(sqrt(double(a) * a + double(b) * b + double(c) * c));
}
static inline float rnorm3df(float a, float b, float c) {
  return float(1.0 / sqrt(double(a) * a + double(b) * b + double(c) * c));
}
static inline float norm4df(float a, float b, float c, float d) {
  return float(sqrt(double(a) * a + double(b) * b + double(c) * c + double(d) * d));
}

using std::abs;
using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;
static inline long long llmax(long long a, long long b) { return max(a, b); }
static inline long long llmin(long long a, long long b) { return min(a, b); }

// math_constants.h
#define CUDART_INF_F __int_as_float(0x7f800000)
#define CUDART_NAN_F __int_as_float(0x7fffffff)
#define CUDART_MIN_DENORM_F __int_as_float(0x00000001)
#define CUDART_MAX_NORMAL_F __int_as_float(0x7f7fffff)
#define CUDART_NEG_ZERO_F __int_as_float(0x80000000)
#define CUDART_ZERO_F 0.0f
#define CUDART_ONE_F 1.0f
#define CUDART_SQRT_HALF_F 0.707106781f
#define CUDART_SQRT_TWO_F 1.414213562f
#define CUDART_PIO4_F 0.785398163f
#define CUDART_PIO2_F 1.570796327f
#define CUDART_PI_F 3.141592654f
#define CUDART_2_OVER_PI_F 0.636619772f
#define CUDART_SQRT_2OVERPI_F 0.797884561f
#define CUDART_L2E_F 1.442695041f
#define CUDART_L2T_F 3.321928094f
#define CUDART_LG2_F 0.301029996f
#define CUDART_LGE_F 0.434294482f
#define CUDART_LN2_F 0.693147181f
#define CUDART_LNT_F 2.302585093f
#define CUDART_INF __longlong_as_double(0x7ff0000000000000ll)
#define CUDART_NAN __longlong_as_double(0xfff8000000000000ll)
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_PIO2 1.5707963267948966e+0
#define CUDART_L2E 1.4426950408889634e+0
#define CUDART_LN2 6.9314718055994529e-1
#define CUDART_SQRT_HALF 7.0710678118654757e-1
