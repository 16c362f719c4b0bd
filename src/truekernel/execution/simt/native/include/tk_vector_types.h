// char1 ... double4 with the sizes and alignments of CUDA's vector_types.h (CUDA C++ Programming Guide, "Built-in Vector Types").
//
// Types that are aligned more strictly than their elements have copy operations of their own under clang: it checks alignment where
// a reference is bound or a member is used, but not where a trivial copy reads memory, and a misaligned float4 load is just what a
// GPU reports. g++ checks trivial copies, and would guard the initialisation of a static array of the other kind.
#pragma once

#ifdef __clang__
#define TK_MEMBERS2(name, type)                                      \
  name() = default;                                                  \
  constexpr name(type vx, type vy = 0) : x(vx), y(vy) {}             \
  constexpr name(const name &v) : x(v.x), y(v.y) {}                  \
  constexpr name &operator=(const name &v) {                         \
    x = v.x, y = v.y;                                                \
    return *this;                                                    \
  }
#define TK_MEMBERS4(name, type)                                      \
  name() = default;                                                  \
  constexpr name(type vx, type vy = 0, type vz = 0, type vw = 0) : x(vx), y(vy), z(vz), w(vw) {} \
  constexpr name(const name &v) : x(v.x), y(v.y), z(v.z), w(v.w) {}  \
  constexpr name &operator=(const name &v) {                         \
    x = v.x, y = v.y, z = v.z, w = v.w;                              \
    return *this;                                                    \
  }
#else
#define TK_MEMBERS2(name, type)
#define TK_MEMBERS4(name, type)
#endif

#define TK_VECTOR1(type, name)                                       \
  struct name##1 {                                                   \
    type x;                                                          \
  };                                                                 \
  static inline constexpr name##1 make_##name##1(type x) { return {x}; }
#define TK_VECTOR2(type, name, alignment)                            \
  struct __attribute__((aligned(alignment))) name##2 {               \
    type x, y;                                                       \
    TK_MEMBERS2(name##2, type)                                       \
  };                                                                 \
  static inline constexpr name##2 make_##name##2(type x, type y) { return {x, y}; }
#define TK_VECTOR3(type, name)                                       \
  struct name##3 {                                                   \
    type x, y, z;                                                    \
  };                                                                 \
  static inline constexpr name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }
#define TK_VECTOR4(type, name, alignment)                            \
  struct __attribute__((aligned(alignment))) name##4 {               \
    type x, y, z, w;                                                 \
    TK_MEMBERS4(name##4, type)                                       \
  };                                                                 \
  static inline constexpr name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
#define TK_VECTORS(type, name, alignment2, alignment4)                \
  TK_VECTOR1(type, name)                                             \
  TK_VECTOR2(type, name, alignment2)                                 \
  TK_VECTOR3(type, name)                                             \
  TK_VECTOR4(type, name, alignment4)

TK_VECTORS(signed char, char, 2, 4)
TK_VECTORS(unsigned char, uchar, 2, 4)
TK_VECTORS(short, short, 4, 8)
TK_VECTORS(unsigned short, ushort, 4, 8)
TK_VECTORS(int, int, 8, 16)
TK_VECTORS(long, long, 16, 16)
TK_VECTORS(unsigned long, ulong, 16, 16)
TK_VECTORS(long long, longlong, 16, 16)
TK_VECTORS(unsigned long long, ulonglong, 16, 16)
TK_VECTORS(float, float, 8, 16)
TK_VECTORS(double, double, 16, 16)
TK_VECTOR1(unsigned int, uint)
TK_VECTOR2(unsigned int, uint, 8)
TK_VECTOR4(unsigned int, uint, 16)
static inline constexpr uint3 make_uint3(unsigned int x, unsigned int y, unsigned int z) { return {x, y, z}; }
