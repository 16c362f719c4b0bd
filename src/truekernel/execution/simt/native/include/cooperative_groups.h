// Cooperative groups (CUDA C++ Programming Guide, "Cooperative Groups"): thread block, static tiles of up to 32 threads, coalesced
// threads (approximated: the lanes that wait nowhere when it is called), and the grid of a cooperative launch.
#pragma once

namespace cooperative_groups {

namespace details {

template <class Group>
constexpr bool is_warp_group = false;

static inline unsigned rank_in_block() { return tk_thread_rank(); }
static inline unsigned threads_in_block() { return blockDim.x * blockDim.y * blockDim.z; }

}  // namespace details

class thread_block {
 public:
  void sync(TK_HERE) const { tk_barrier(tk_line); }
  unsigned thread_rank() const { return details::rank_in_block(); }
  unsigned size() const { return details::threads_in_block(); }
  unsigned num_threads() const { return details::threads_in_block(); }
  dim3 group_index() const { return dim3(blockIdx); }
  dim3 thread_index() const { return dim3(threadIdx); }
  dim3 group_dim() const { return blockDim; }
  dim3 dim_threads() const { return blockDim; }
};
static inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  void sync(TK_HERE) const {
    tk_fence(TK_FENCE_DEVICE);
    tk_grid_barrier(tk_line);
  }
  bool is_valid() const { return true; }
  unsigned long long size() const { return (unsigned long long)num_blocks() * details::threads_in_block(); }
  unsigned long long num_threads() const { return size(); }
  unsigned long long num_blocks() const { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  unsigned long long block_rank() const {
    return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
  }
  unsigned long long thread_rank() const { return block_rank() * details::threads_in_block() + details::rank_in_block(); }
  dim3 dim_blocks() const { return gridDim; }
  dim3 group_dim() const { return gridDim; }
  dim3 block_index() const { return dim3(blockIdx); }
};
static inline grid_group this_grid() { return {}; }

// What tiles and coalesced groups share: lanes of one warp, numbered by rank.
template <class Derived>
class warp_group {
 public:
  void sync(TK_HERE) const { tk_warp(TK_WARP_SYNC, mask(), 0, 0, tk_line); }
  template <class T>
  T shfl(T value, int source, TK_HERE) const {
    return exchange(value, lane_of(unsigned(source) % self().num_threads()), tk_line);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, TK_HERE) const {
    const unsigned rank = self().thread_rank();
    return exchange(value, lane_of(rank >= delta ? rank - delta : rank), tk_line);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, TK_HERE) const {
    const unsigned rank = self().thread_rank();
    return exchange(value, lane_of(rank + delta < self().num_threads() ? rank + delta : rank), tk_line);
  }
  template <class T>
  T shfl_xor(T value, unsigned bits, TK_HERE) const {
    const unsigned rank = self().thread_rank(), other = rank ^ bits;
    return exchange(value, lane_of(other < self().num_threads() ? other : rank), tk_line);
  }
  int any(int predicate, TK_HERE) const { return __any_sync(mask(), predicate, tk_line); }
  int all(int predicate, TK_HERE) const { return __all_sync(mask(), predicate, tk_line); }
  unsigned ballot(int predicate, TK_HERE) const { return ranks_of(__ballot_sync(mask(), predicate, tk_line)); }
  template <class T>
  unsigned match_any(T value, TK_HERE) const {
    return ranks_of(__match_any_sync(mask(), value, tk_line));
  }
  template <class T>
  unsigned match_all(T value, int &predicate, TK_HERE) const {
    return ranks_of(__match_all_sync(mask(), value, &predicate, tk_line));
  }

  unsigned mask() const { return self().lanes(); }
  unsigned lane_of(unsigned rank) const {
    unsigned rest = mask();
    while (rank-- && rest) rest &= rest - 1;
    return rest ? unsigned(__builtin_ctz(rest)) : 32u;
  }

 private:
  const Derived &self() const { return static_cast<const Derived &>(*this); }
  unsigned ranks_of(unsigned lanes) const {
    unsigned out = 0, rank = 0;
    for (unsigned rest = mask(); rest; rest &= rest - 1, ++rank)
      if (lanes & rest & -rest) out |= 1u << rank;
    return out;
  }
  template <class T>
  T exchange(T value, unsigned lane, int line) const {
    if constexpr (tk_detail::CanShuffle<T>::value) {
      return tk_detail::shuffle(mask(), value, int(lane), line);
    } else {
      // Any trivially copyable type, four bytes at a time, as CUDA does.
      static_assert(std::is_trivially_destructible<T>::value && sizeof(T) <= 32, "up to 32 bytes without ownership");
      unsigned words[(sizeof(T) + 3) / 4] = {};
      __builtin_memcpy(words, &value, sizeof value);
      for (unsigned &word : words) word = tk_detail::shuffle(mask(), word, int(lane), line);
      __builtin_memcpy((void *)&value, words, sizeof value);
      return value;
    }
  }
};

template <unsigned Size, class Parent = void>
class thread_block_tile : public warp_group<thread_block_tile<Size, Parent>> {
  static_assert(Size && (Size & (Size - 1)) == 0, "a tile's size is a power of two");
  static_assert(Size <= 32, "tiles of more than 32 threads are not supported on the CPU");

 public:
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other> &other)
      : rank_(other.meta_group_rank()), count_(other.meta_group_size()) {}
  thread_block_tile(unsigned rank, unsigned count) : rank_(rank), count_(count) {}
  unsigned lanes() const { return Size == 32 ? 0xffffffffu : ((1u << (Size & 31)) - 1u) << (tk_lane() & ~(Size - 1)); }
  unsigned thread_rank() const { return details::rank_in_block() % Size; }
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  unsigned meta_group_rank() const { return rank_; }
  unsigned meta_group_size() const { return count_; }

 private:
  unsigned rank_, count_;  // of this tile among those that its parent was cut into
};

class coalesced_group : public warp_group<coalesced_group> {
 public:
  explicit coalesced_group(unsigned lanes, unsigned rank = 0, unsigned count = 1)
      : lanes_(lanes), rank_(rank), count_(count) {}
  unsigned lanes() const { return lanes_; }
  unsigned size() const { return unsigned(__popc(lanes_)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return unsigned(__popc(lanes_ & ((1u << tk_lane()) - 1u))); }
  unsigned meta_group_rank() const { return rank_; }
  unsigned meta_group_size() const { return count_; }

 private:
  unsigned lanes_, rank_, count_;
};
// One thread runs at a time, so lanes meet here and go on as one group: those of the warp that have neither exited nor wait
// elsewhere for a barrier.
static inline coalesced_group coalesced_threads(TK_HERE) { return coalesced_group(tk_converge(tk_line)); }

namespace details {
template <unsigned Size, class Parent>
constexpr bool is_warp_group<thread_block_tile<Size, Parent>> = true;
template <>
constexpr bool is_warp_group<coalesced_group> = true;
}  // namespace details

template <unsigned Size, class Parent>
static inline thread_block_tile<Size, Parent> tiled_partition(const Parent &parent) {
  return {parent.thread_rank() / Size, (parent.num_threads() + Size - 1) / Size};
}
template <class Group>
static inline coalesced_group binary_partition(const Group &group, bool predicate, TK_HERE) {
  const unsigned lanes = __ballot_sync(group.mask(), predicate, tk_line);
  return coalesced_group(predicate ? lanes : group.mask() & ~lanes, predicate ? 1 : 0, 2);
}

template <class Group>
static inline void sync(const Group &group, TK_HERE) {
  group.sync(tk_line);
}
static inline void sync(const thread_block &, TK_HERE) { tk_barrier(tk_line); }

#define TK_OPERATOR(name, expression)                \
  template <class T = void>                          \
  struct name {                                      \
    T operator()(T a, T b) const { return expression; } \
  };                                                 \
  template <>                                        \
  struct name<void> {                                \
    template <class T>                               \
    T operator()(T a, T b) const { return expression; } \
  };
TK_OPERATOR(plus, a + b)
TK_OPERATOR(less, b < a ? b : a)
TK_OPERATOR(greater, b > a ? b : a)
TK_OPERATOR(bit_and, a & b)
TK_OPERATOR(bit_or, a | b)
TK_OPERATOR(bit_xor, a ^ b)
#undef TK_OPERATOR

// A butterfly where the group is full, else rank by rank: in both a fixed order of operations.
template <class Group, class T, class Operation>
static inline T reduce(const Group &group, T value, Operation operation, TK_HERE) {
  static_assert(details::is_warp_group<Group>, "reduce takes a tile of up to 32 threads or a coalesced group");
  const unsigned size = group.num_threads();
  if ((size & (size - 1)) == 0) {
    for (unsigned distance = size / 2; distance; distance >>= 1) value = operation(value, group.shfl_xor(value, distance, tk_line));
    return value;
  }
  T total = group.shfl(value, 0, tk_line);
  for (unsigned rank = 1; rank < size; ++rank) total = operation(total, group.shfl(value, int(rank), tk_line));
  return total;
}

template <class Group, class T, class Operation = plus<T>>
static inline T inclusive_scan(const Group &group, T value, Operation operation = {}, TK_HERE) {
  const unsigned rank = group.thread_rank();
  for (unsigned distance = 1; distance < group.num_threads(); distance <<= 1) {
    const T other = group.shfl_up(value, distance, tk_line);
    if (rank >= distance) value = operation(other, value);
  }
  return value;
}
template <class Group, class T>
static inline T exclusive_scan(const Group &group, T value, TK_HERE) {
  const T sum = inclusive_scan(group, value, plus<T>{}, tk_line);
  const T before = group.shfl_up(sum, 1, tk_line);
  return group.thread_rank() ? before : T(0);
}

// Copies by all threads of the group; done when the group has waited.
template <class Group, class T>
static inline void memcpy_async(const Group &group, T *to, const T *from, size_t bytes) {
  char *target = reinterpret_cast<char *>(to);
  const char *source = reinterpret_cast<const char *>(from);
  for (size_t i = group.thread_rank(); i < bytes; i += group.size()) target[i] = source[i];
}
template <class Group>
static inline void wait(const Group &group, TK_HERE) {
  group.sync(tk_line);
}

}  // namespace cooperative_groups
