// Integer, conversion and reinterpretation intrinsics (CUDA Math API, "Integer Intrinsics", "Type Casting Intrinsics").
#pragma once

#define TK_REINTERPRET(name, from, to)              \
  static inline to name(from value) {               \
    to out;                                         \
    static_assert(sizeof(from) == sizeof(to), "");  \
    __builtin_memcpy(&out, &value, sizeof out);     \
    return out;                                     \
  }
TK_REINTERPRET(__float_as_int, float, int)
TK_REINTERPRET(__int_as_float, int, float)
TK_REINTERPRET(__float_as_uint, float, unsigned)
TK_REINTERPRET(__uint_as_float, unsigned, float)
TK_REINTERPRET(__double_as_longlong, double, long long)
TK_REINTERPRET(__longlong_as_double, long long, double)
#undef TK_REINTERPRET
static inline int __double2hiint(double d) { return int(__double_as_longlong(d) >> 32); }
static inline int __double2loint(double d) { return int(__double_as_longlong(d)); }
static inline double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)((unsigned long long)(unsigned)high << 32 | (unsigned)low));
}

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned long long __brevll(unsigned long long x) {
  x = __builtin_bswap64(x);
  x = (x & 0x0f0f0f0f0f0f0f0full) << 4 | (x >> 4 & 0x0f0f0f0f0f0f0f0full);
  x = (x & 0x3333333333333333ull) << 2 | (x >> 2 & 0x3333333333333333ull);
  return (x & 0x5555555555555555ull) << 1 | (x >> 1 & 0x5555555555555555ull);
}
static inline unsigned __brev(unsigned x) { return unsigned(__brevll(x) >> 32); }
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)high << 32 | low) >> (shift & 31));
}
static inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
static inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)y << 32 | x;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) out |= unsigned(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  return out;
}
static inline int __mul24(int a, int b) { return int(unsigned(a << 8 >> 8) * unsigned(b << 8 >> 8)); }
static inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
static inline int __mulhi(int a, int b) { return int((long long)a * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)a * b >> 32); }
static inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline int __hadd(int a, int b) { return int(((long long)a + b) >> 1); }
static inline int __rhadd(int a, int b) { return int(((long long)a + b + 1) >> 1); }
static inline unsigned __uhadd(unsigned a, unsigned b) { return unsigned(((unsigned long long)a + b) >> 1); }
static inline unsigned __urhadd(unsigned a, unsigned b) { return unsigned(((unsigned long long)a + b + 1) >> 1); }
static inline unsigned __sad(int a, int b, unsigned c) {
  return c + unsigned(a < b ? (long long)b - a : (long long)a - b);
}
static inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a < b ? b - a : a - b); }
static inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += int((signed char)(a >> 8 * i)) * int((signed char)(b >> 8 * i));
  return c;
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 255) * (b >> 8 * i & 255);
  return c;
}
static inline int __dp4a(char4 a, char4 b, int c) { return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
static inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) { return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

// min and max: exactly CUDA's overloads, so that a call that is ambiguous there is ambiguous here.
#define TK_MIN_MAX(result, a_type, b_type)                                                                        \
  static inline constexpr result min(a_type a, b_type b) { return (result)a < (result)b ? (result)a : (result)b; } \
  static inline constexpr result max(a_type a, b_type b) { return (result)a > (result)b ? (result)a : (result)b; }
TK_MIN_MAX(int, int, int)
TK_MIN_MAX(unsigned, unsigned, unsigned)
TK_MIN_MAX(unsigned, int, unsigned)
TK_MIN_MAX(unsigned, unsigned, int)
TK_MIN_MAX(long, long, long)
TK_MIN_MAX(unsigned long, unsigned long, unsigned long)
TK_MIN_MAX(unsigned long, long, unsigned long)
TK_MIN_MAX(unsigned long, unsigned long, long)
TK_MIN_MAX(long long, long long, long long)
TK_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
TK_MIN_MAX(unsigned long long, long long, unsigned long long)
TK_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef TK_MIN_MAX
#define TK_FLOAT_MIN_MAX(result, a_type, b_type, suffix)                                          \
  static inline constexpr result min(a_type a, b_type b) { return __builtin_fmin##suffix(a, b); } \
  static inline constexpr result max(a_type a, b_type b) { return __builtin_fmax##suffix(a, b); }
TK_FLOAT_MIN_MAX(float, float, float, f)
TK_FLOAT_MIN_MAX(double, double, double, )
TK_FLOAT_MIN_MAX(double, float, double, )
TK_FLOAT_MIN_MAX(double, double, float, )
#undef TK_FLOAT_MIN_MAX
static inline constexpr unsigned umin(unsigned a, unsigned b) { return min(a, b); }
static inline constexpr unsigned umax(unsigned a, unsigned b) { return max(a, b); }

// Loads and stores with a cache hint.
#define TK_LOAD(name)             \
  template <class T>              \
  static inline T name(const T *address) { \
    return *address;              \
  }
TK_LOAD(__ldg) TK_LOAD(__ldca) TK_LOAD(__ldcs) TK_LOAD(__ldlu)
#undef TK_LOAD
// These read memory every time, also in a loop.
#define TK_LOAD(name)                                  \
  template <class T>                                   \
  static inline T name(const T *address) {             \
    if constexpr (std::is_scalar<T>::value)            \
      return *static_cast<const volatile T *>(address); \
    else                                               \
      return *address;                                 \
  }
TK_LOAD(__ldcg) TK_LOAD(__ldcv)
#undef TK_LOAD
namespace tk_detail {
template <class T>
struct Stored {
  using type = T;
};
}  // namespace tk_detail
#define TK_STORE(name)                                                                    \
  template <class T>                                                                      \
  static inline void name(T *address, typename tk_detail::Stored<T>::type value) {        \
    *address = value;                                                                     \
  }
TK_STORE(__stwb) TK_STORE(__stcs)
#undef TK_STORE
#define TK_STORE(name)                                                                    \
  template <class T>                                                                      \
  static inline void name(T *address, typename tk_detail::Stored<T>::type value) {        \
    if constexpr (std::is_scalar<T>::value)                                               \
      *static_cast<volatile T *>(address) = value;                                        \
    else                                                                                  \
      *address = value;                                                                   \
  }
TK_STORE(__stcg) TK_STORE(__stwt)
#undef TK_STORE

static inline long long clock64() { return tk_clock(); }
static inline int clock() { return int(tk_clock()); }
static inline unsigned long long __globaltimer() { return (unsigned long long)tk_clock(); }

