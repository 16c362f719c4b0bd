// Atomic functions (CUDA C++ Programming Guide, "Atomic Functions"). Device threads share one host thread, so that a plain
// read-modify-write between tk_atomic_begin and tk_atomic_end is atomic.
#pragma once

namespace tk_detail {

template <class T>
struct Same {
  using type = T;
};
template <class T>
using AsIs = typename Same<T>::type;  // takes a parameter out of template argument deduction

template <class T, class Operation>
TK_UNHOOKED static inline T update(T *address, int line, Operation operation) {
  tk_atomic_begin(address, sizeof(T), line);
  const T before = *static_cast<volatile T *>(address);
  const T after = operation(before);
  *static_cast<volatile T *>(address) = after;
  tk_atomic_end(address, __builtin_memcmp(&before, &after, sizeof(T)) != 0);
  return before;
}

// Types without volatile assignment (half, vectors) go through their bits.
template <class Bits, class T, class Operation>
TK_UNHOOKED static inline T update_bits(T *address, int line, Operation operation) {
  static_assert(sizeof(Bits) == sizeof(T), "bits of the same size");
  T result;
  const Bits before = update(reinterpret_cast<Bits *>(address), line, [&](Bits old) TK_INLINE_LAMBDA {
    T value;
    __builtin_memcpy(&value, &old, sizeof value);
    value = operation(value);
    Bits bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
  });
  __builtin_memcpy(&result, &before, sizeof result);
  return result;
}

template <class T>
constexpr bool is_word = std::is_integral<T>::value && (sizeof(T) == 4 || sizeof(T) == 8);
template <class T>
constexpr bool is_number = is_word<T> || std::is_floating_point<T>::value;

}  // namespace tk_detail

#define TK_ATOMIC(name, requirement, expression)                                                             \
  template <class T, std::enable_if_t<tk_detail::requirement<T>, int> = 0>                                   \
  static inline T name(T *address, tk_detail::AsIs<T> value, TK_HERE) {                                      \
    return tk_detail::update(address, tk_line, [=](T old) TK_INLINE_LAMBDA -> T { return expression; });                      \
  }
#define TK_ATOMIC_SCOPES(name, requirement, expression) \
  TK_ATOMIC(name, requirement, expression)              \
  TK_ATOMIC(name##_block, requirement, expression)      \
  TK_ATOMIC(name##_system, requirement, expression)

TK_ATOMIC_SCOPES(atomicAdd, is_number, old + value)
TK_ATOMIC_SCOPES(atomicSub, is_word, old - value)
TK_ATOMIC_SCOPES(atomicExch, is_number, value)
TK_ATOMIC_SCOPES(atomicMin, is_word, value < old ? value : old)
TK_ATOMIC_SCOPES(atomicMax, is_word, value > old ? value : old)
TK_ATOMIC_SCOPES(atomicAnd, is_word, old & value)
TK_ATOMIC_SCOPES(atomicOr, is_word, old | value)
TK_ATOMIC_SCOPES(atomicXor, is_word, old ^ value)
TK_ATOMIC_SCOPES(atomicInc, is_word, old >= value ? T(0) : T(old + 1))
TK_ATOMIC_SCOPES(atomicDec, is_word, old == 0 || old > value ? value : T(old - 1))
#undef TK_ATOMIC
#undef TK_ATOMIC_SCOPES

#define TK_ATOMIC_CAS(name)                                                                                           \
  template <class T, std::enable_if_t<tk_detail::is_word<T> || std::is_same<T, unsigned short>::value, int> = 0>      \
  static inline T name(T *address, tk_detail::AsIs<T> compare, tk_detail::AsIs<T> value, TK_HERE) {                   \
    return tk_detail::update(address, tk_line, [=](T old) TK_INLINE_LAMBDA -> T { return old == compare ? value : old; });             \
  }
TK_ATOMIC_CAS(atomicCAS)
TK_ATOMIC_CAS(atomicCAS_block)
TK_ATOMIC_CAS(atomicCAS_system)
#undef TK_ATOMIC_CAS

#define TK_ATOMIC_ADD(type, bits, expression)                                                       \
  static inline type atomicAdd(type *address, type value, TK_HERE) {                                \
    return tk_detail::update_bits<bits>(address, tk_line, [=](type old) TK_INLINE_LAMBDA -> type { return expression; }); \
  }
TK_ATOMIC_ADD(__half, unsigned short, old + value)
TK_ATOMIC_ADD(__half2, unsigned, old + value)
TK_ATOMIC_ADD(__nv_bfloat16, unsigned short, old + value)
TK_ATOMIC_ADD(__nv_bfloat162, unsigned, old + value)
#undef TK_ATOMIC_ADD
static inline float2 atomicAdd(float2 *address, float2 value, TK_HERE) {
  return {atomicAdd(&address->x, value.x, tk_line), atomicAdd(&address->y, value.y, tk_line)};
}
static inline float4 atomicAdd(float4 *address, float4 value, TK_HERE) {
  return {atomicAdd(&address->x, value.x, tk_line), atomicAdd(&address->y, value.y, tk_line),
          atomicAdd(&address->z, value.z, tk_line), atomicAdd(&address->w, value.w, tk_line)};
}
