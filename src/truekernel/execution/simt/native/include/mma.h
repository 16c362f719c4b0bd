// nvcuda::wmma as a warp collective (CUDA C++ Programming Guide, "Warp Matrix Functions"). Which lane holds which element is
// unspecified in CUDA; here lane l holds elements l*n ... l*n+n-1 of the row-major tile. Products are exact and summed in the
// accumulator's precision (half accumulators: in float, rounded at the end), in the order of k.
#pragma once

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
struct u4 {};
struct s4 {};
struct b1 {};
}  // namespace precision

namespace details {

template <class T>
struct Element {
  using storage = T;
  using sum = T;
  static T value(T x) { return x; }
};
template <>
struct Element<__half> {
  using storage = __half;
  using sum = float;
  static float value(__half x) { return float(x); }
};
template <>
struct Element<__nv_bfloat16> {
  using storage = __nv_bfloat16;
  using sum = float;
  static float value(__nv_bfloat16 x) { return float(x); }
};
template <>
struct Element<precision::tf32> {
  using storage = float;
  using sum = float;
  // The matrix unit ignores the 13 low bits of a float.
  static float value(float x) { return __uint_as_float(__float_as_uint(x) & ~0x1fffu); }
};
template <>
struct Element<signed char> {
  using storage = signed char;
  using sum = int;
  static int value(signed char x) { return x; }
};
template <>
struct Element<unsigned char> {
  using storage = unsigned char;
  using sum = int;
  static int value(unsigned char x) { return x; }
};

template <class Use, int M, int N, int K>
struct Extent;
template <int M, int N, int K>
struct Extent<matrix_a, M, N, K> {
  static constexpr int rows = M, columns = K;
};
template <int M, int N, int K>
struct Extent<matrix_b, M, N, K> {
  static constexpr int rows = K, columns = N;
};
template <int M, int N, int K>
struct Extent<accumulator, M, N, K> {
  static constexpr int rows = M, columns = N;
};

template <int M, int N, int K, class T>
constexpr bool is_shape() {
  constexpr bool wide = (M == 16 && N == 16 && K == 16) || (M == 32 && N == 8 && K == 16) || (M == 8 && N == 32 && K == 16);
  if (std::is_same<T, precision::tf32>::value) return M == 16 && N == 16 && K == 8;
  if (std::is_same<T, double>::value) return M == 8 && N == 8 && K == 4;
  return wide || (std::is_same<T, float>::value && M == 16 && N == 16 && K == 8);
}

}  // namespace details

template <class Use, int M, int N, int K, class T, class Layout = void>
class fragment {
  static_assert(details::is_shape<M, N, K, T>(), "no such matrix shape for this element type");

 public:
  using element_type = T;
  using storage_element_type = typename details::Element<T>::storage;
  static constexpr int rows = details::Extent<Use, M, N, K>::rows, columns = details::Extent<Use, M, N, K>::columns;
  static constexpr int num_elements = rows * columns / 32;
  static constexpr int num_storage_elements = num_elements;
  storage_element_type x[num_elements];
};

namespace details {

template <class Fragment, class Pointer, class Action>
static inline void each_element(Fragment &fragment, Pointer memory, unsigned stride, bool by_row, Action action) {
  const int first = int(tk_lane()) * Fragment::num_elements;
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const int row = (first + i) / Fragment::columns, column = (first + i) % Fragment::columns;
    action(fragment.x[i], memory[by_row ? size_t(row) * stride + column : size_t(column) * stride + row]);
  }
}

static inline void meet(int line) { tk_warp(TK_WARP_GATHER, 0xffffffffu, 0, 0, line); }

}  // namespace details

template <class Fragment, class T>
static inline void fill_fragment(Fragment &fragment, const T &value) {
  for (int i = 0; i < Fragment::num_elements; ++i) fragment.x[i] = typename Fragment::storage_element_type(value);
}

template <class Use, int M, int N, int K, class T, class Layout, class Memory>
static inline void load_matrix_sync(fragment<Use, M, N, K, T, Layout> &fragment, const Memory *memory, unsigned stride, TK_HERE) {
  static_assert(!std::is_same<Layout, void>::value, "an accumulator is loaded with a layout argument");
  details::meet(tk_line);
  details::each_element(fragment, memory, stride, std::is_same<Layout, row_major>::value,
                        [](auto &element, const Memory &value) { element = value; });
}
template <int M, int N, int K, class T, class Memory>
static inline void load_matrix_sync(fragment<accumulator, M, N, K, T> &fragment, const Memory *memory, unsigned stride,
                                    layout_t layout, TK_HERE) {
  details::meet(tk_line);
  details::each_element(fragment, memory, stride, layout == mem_row_major,
                        [](auto &element, const Memory &value) { element = value; });
}
template <int M, int N, int K, class T, class Memory>
static inline void store_matrix_sync(Memory *memory, const fragment<accumulator, M, N, K, T> &fragment, unsigned stride,
                                     layout_t layout, TK_HERE) {
  details::meet(tk_line);
  details::each_element(fragment, memory, stride, layout == mem_row_major,
                        [](const auto &element, Memory &value) { value = element; });
}

template <int M, int N, int K, class A, class LayoutA, class B, class LayoutB, class C, class D>
TK_UNHOOKED static inline void mma_sync(fragment<accumulator, M, N, K, D> &d, const fragment<matrix_a, M, N, K, A, LayoutA> &a,
                                        const fragment<matrix_b, M, N, K, B, LayoutB> &b,
                                        const fragment<accumulator, M, N, K, C> &c, TK_HERE) {
  using FragmentA = fragment<matrix_a, M, N, K, A, LayoutA>;
  using FragmentB = fragment<matrix_b, M, N, K, B, LayoutB>;
  using FragmentD = fragment<accumulator, M, N, K, D>;
  using Sum = typename details::Element<D>::sum;
  uint64_t all_a[32], all_b[32];
  __builtin_memcpy(all_a, (void *)tk_warp(TK_WARP_GATHER, 0xffffffffu, uint64_t(&a), 0, tk_line), sizeof all_a);
  __builtin_memcpy(all_b, (void *)tk_warp(TK_WARP_GATHER, 0xffffffffu, uint64_t(&b), 0, tk_line), sizeof all_b);
  const int first = int(tk_lane()) * FragmentD::num_elements;
  for (int i = 0; i < FragmentD::num_elements; ++i) {
    const int row = (first + i) / N, column = (first + i) % N;
    Sum sum = details::Element<C>::value(c.x[i]);
    for (int k = 0; k < K; ++k) {
      const int at_a = row * K + k, at_b = k * N + column;
      const auto &lane_a = *(const FragmentA *)all_a[at_a / FragmentA::num_elements];
      const auto &lane_b = *(const FragmentB *)all_b[at_b / FragmentB::num_elements];
      const auto x = details::Element<A>::value(lane_a.x[at_a % FragmentA::num_elements]);
      const auto y = details::Element<B>::value(lane_b.x[at_b % FragmentB::num_elements]);
      if constexpr (std::is_same<Sum, float>::value)
        sum = __builtin_fmaf(float(x), float(y), sum);
      else if constexpr (std::is_same<Sum, double>::value)
        sum = __builtin_fma(double(x), double(y), sum);
      else
        sum += Sum(x) * Sum(y);
    }
    d.x[i] = typename FragmentD::storage_element_type(sum);
  }
  details::meet(tk_line);  // nobody changes its fragments while others still read them
}

static inline float __float_to_tf32(float x) {
  const unsigned bits = __float_as_uint(x);
  return (bits & 0x7f800000u) == 0x7f800000u ? x : __uint_as_float((bits + 0x1000u) & ~0x1fffu);
}

}  // namespace wmma
}  // namespace nvcuda
