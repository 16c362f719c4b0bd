// Barriers and warp collectives (CUDA C++ Programming Guide, "Synchronization Functions" to "Warp Shuffle Functions").
#pragma once

static inline void __syncthreads(TK_HERE) { tk_barrier(tk_line); }
static inline int __syncthreads_count(int predicate, TK_HERE) {
  return tk_barrier_reduce(tk_line, TK_BARRIER_COUNT, predicate);
}
static inline int __syncthreads_and(int predicate, TK_HERE) { return tk_barrier_reduce(tk_line, TK_BARRIER_AND, predicate); }
static inline int __syncthreads_or(int predicate, TK_HERE) { return tk_barrier_reduce(tk_line, TK_BARRIER_OR, predicate); }
static inline void __syncwarp(unsigned mask = 0xffffffffu, TK_HERE) { tk_warp(TK_WARP_SYNC, mask, 0, 0, tk_line); }
static inline void __threadfence() { tk_fence(TK_FENCE_DEVICE); }
static inline void __threadfence_block() { tk_fence(TK_FENCE_BLOCK); }
static inline void __threadfence_system() { tk_fence(TK_FENCE_DEVICE); }
static inline unsigned __activemask(TK_HERE) { return tk_converge(tk_line); }
static inline void __nanosleep(unsigned) { tk_yield(); }
static inline void __trap(TK_HERE) { tk_trap("__trap", tk_line); }
static inline void __brkpt(TK_HERE) { tk_trap("__brkpt", tk_line); }

namespace tk_detail {

template <class T>
struct CanShuffle {
  static constexpr bool value = std::is_arithmetic<T>::value && sizeof(T) <= 8;
};
template <>
struct CanShuffle<__half> : std::true_type {};
template <>
struct CanShuffle<__half2> : std::true_type {};
template <>
struct CanShuffle<__nv_bfloat16> : std::true_type {};
template <>
struct CanShuffle<__nv_bfloat162> : std::true_type {};

template <class T>
static inline T shuffle(unsigned mask, T value, int source, int line) {
  static_assert(CanShuffle<T>::value, "a shuffle takes a number of 4 or 8 bytes, a half or a half2");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = tk_warp(TK_WARP_SHUFFLE, mask, bits, source, line);
  __builtin_memcpy((void *)&value, &bits, sizeof value);
  return value;
}

}  // namespace tk_detail

template <class T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, TK_HERE) {
  const int lane = int(tk_lane());
  return tk_detail::shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)), tk_line);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, TK_HERE) {
  const int lane = int(tk_lane()), source = lane - int(delta);
  return tk_detail::shuffle(mask, value, source < (lane & ~(width - 1)) ? lane : source, tk_line);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, TK_HERE) {
  const int lane = int(tk_lane()), source = lane + int(delta);
  return tk_detail::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, tk_line);
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, TK_HERE) {
  const int lane = int(tk_lane()), source = lane ^ lane_mask;
  return tk_detail::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, tk_line);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, TK_HERE) {
  return unsigned(tk_warp(TK_WARP_BALLOT, mask, predicate != 0, 0, tk_line));
}
static inline int __any_sync(unsigned mask, int predicate, TK_HERE) {
  return tk_warp(TK_WARP_BALLOT, mask, predicate != 0, 0, tk_line) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, TK_HERE) {
  return tk_warp(TK_WARP_BALLOT, mask, predicate == 0, 0, tk_line) == 0;
}

namespace tk_detail {
template <class T>
static inline uint64_t match_bits(T value) {
  static_assert(std::is_arithmetic<T>::value && (sizeof(T) == 4 || sizeof(T) == 8), "match takes 4 or 8 bytes");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
}  // namespace tk_detail
template <class T>
static inline unsigned __match_any_sync(unsigned mask, T value, TK_HERE) {
  return unsigned(tk_warp(TK_WARP_MATCH_ANY, mask, tk_detail::match_bits(value), 0, tk_line));
}
template <class T>
static inline unsigned __match_all_sync(unsigned mask, T value, int *predicate, TK_HERE) {
  const auto lanes = unsigned(tk_warp(TK_WARP_MATCH_ALL, mask, tk_detail::match_bits(value), 0, tk_line));
  *predicate = lanes != 0;
  return lanes;
}

#define TK_REDUCE(name, type, wide, kind)                                       \
  static inline type name(unsigned mask, type value, TK_HERE) {                 \
    return type(tk_warp(kind, mask, uint64_t(wide(value)), 0, tk_line));        \
  }
TK_REDUCE(__reduce_add_sync, int, int64_t, TK_WARP_ADD)
TK_REDUCE(__reduce_add_sync, unsigned, uint64_t, TK_WARP_ADD)
TK_REDUCE(__reduce_min_sync, int, int64_t, TK_WARP_MIN_SIGNED)
TK_REDUCE(__reduce_min_sync, unsigned, uint64_t, TK_WARP_MIN_UNSIGNED)
TK_REDUCE(__reduce_max_sync, int, int64_t, TK_WARP_MAX_SIGNED)
TK_REDUCE(__reduce_max_sync, unsigned, uint64_t, TK_WARP_MAX_UNSIGNED)
TK_REDUCE(__reduce_and_sync, unsigned, uint64_t, TK_WARP_AND)
TK_REDUCE(__reduce_or_sync, unsigned, uint64_t, TK_WARP_OR)
TK_REDUCE(__reduce_xor_sync, unsigned, uint64_t, TK_WARP_XOR)
#undef TK_REDUCE
