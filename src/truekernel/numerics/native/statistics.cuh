// Statistics of one execution over device memory, in one pass: the device copy of truekernel/numerics/statistics.py, whose text is the meaning.
// Compile with contraction off (-fmad=false) and without fast math: the comparisons must round as torch does on a CPU. Counts and maxima equal the
// CPU's exactly; sums are taken in a fixed order of their own, so that a device makes the same bits in every run.
//
// tk_judge: every block reduces what its threads saw to one row of partial results. tk_combine: folds the rows into the execution's state, in order.
// An output may be given in parts (chunks): each part is one tk_judge and one tk_combine.
//
// State: 64-bit words flat, worst, squares, signed sum (float64), nonfinite, unwritten, digest, one count for each tolerance (uint64), one maximum
// for each rho (float64). The digest is defined in truekernel/numerics/digest.py. The text of `items.cuh` stands in front of this one.

namespace truekernel_statistics {

template <int Count>
struct Slots {
  static constexpr int size = Count > 0 ? Count : 1;
};

// What the output is compared with, and the tolerances in the type of the comparison. Without Spread the bounds of all rhos are one, and Rhos is 1 here.
template <class F, int Tolerances, int Rhos, bool Spread>
struct Question {
  typename F::Compute atol[Slots<Tolerances>::size], rtol[Slots<Tolerances>::size];
  bool exact[Slots<Tolerances>::size];
  double rhos[Slots<Rhos>::size];
  static constexpr bool has_spread = Spread;
  const double *truth, *scale, *spread, *ties;
  long long ties_length;
  bool poison;
};

// What one thread has seen. `low`: just below `flat`, from which a filter is safe against its own roundings.
template <class F, int Tolerances, int Rhos>
struct Answer {
  typename F::Compute low = 0;
  double flat = 0, worst = 0, squares = 0, signed_sum = 0, bounds[Slots<Rhos>::size] = {};
  unsigned nonfinite = 0, unwritten = 0, mismatches[Slots<Tolerances>::size] = {};
  Word digest = 0;
};

// Whether the flat ratio might exceed the maximum so far, or is not finite; spares a division in float64.
template <class F>
static __device__ __forceinline__ bool above(typename F::Compute low, typename F::Compute size, typename F::Compute difference) {
  return !(difference <= low * (typename F::Compute(1) + size)) || !(difference < F::infinity());
}

// Counts the mismatches of an item; returns whether it needs a closer look.
template <class F, int Tolerances, int Rhos, bool Spread>
static __device__ __forceinline__ bool glance(const Question<F, Tolerances, Rhos, Spread> &question, typename F::Item output,
                                              typename F::Item published, Answer<F, Tolerances, Rhos> &answer) {
  typedef typename F::Compute C;
  if constexpr (F::precision == 0) {
    return output != published;
  } else {
    const C o = F::load(output), r = F::load(published), size = fabs(o), difference = fabs(r - o);
    const bool unequal = !(o == r);
    C actual = F::round(difference);
    if (!(actual < F::infinity())) actual = F::nan();
#pragma unroll
    for (int k = 0; k < Tolerances; k++) {
      const C allowed = F::round(F::round(question.rtol[k] * size) + question.atol[k]);
      if (unequal && !(actual <= allowed)) answer.mismatches[k]++;
    }
    return above<F>(answer.low, size, difference);
  }
}

// The closer look at an item that may be unwritten or have the largest flat ratio so far. Integers count their mismatches here.
template <class F, int Tolerances, int Rhos, bool Spread>
static __device__ __forceinline__ void compare(const Question<F, Tolerances, Rhos, Spread> &question, typename F::Item output,
                                               typename F::Item published, Answer<F, Tolerances, Rhos> &answer) {
  typedef typename F::Compute C;
  const C a = F::load(output), b = F::load(published);
  if constexpr (F::precision == 0) {
    if (output == published) return;
    const C actual = fabs(b - a);
#pragma unroll
    for (int k = 0; k < Tolerances; k++) {
      const C allowed = fabs(question.rtol[k] * a) + question.atol[k];
      answer.mismatches[k] += question.exact[k] || !(actual <= allowed);
    }
  } else {
    if (!above<F>(answer.low, C(fabs(a)), C(fabs(b - a)))) return;
  }
  if (question.poison && poisoned<F>(output) && !poisoned<F>(published)) answer.unwritten++;
  const double o = to_double<F>(output), r = to_double<F>(published);
  if (o == r || answer.flat >= kLimit) return;
  const double quotient = fabs(o - r) / (1.0 + fabs(o));
  const double value = is_finite(o) && is_finite(r) && quotient < kLimit ? quotient : kLimit;
  if (value > answer.flat) {
    answer.flat = value;
    answer.low = F::low(value);
  }
}

// An element's error, its unit and what it may be compared with.
struct Error {
  double size, unit, scale, spread;
};

// The error of an element; adds to the sums. `index`: number of the element in this part.
template <class F, int Tolerances, int Rhos, bool Spread>
static __device__ __forceinline__ Error measure(const Question<F, Tolerances, Rhos, Spread> &question, typename F::Item output, double truth,
                                                double scale, double spread, long long index, Answer<F, Tolerances, Rhos> &answer) {
  double got = to_double<F>(output);
  const bool negative = truth < 0;
  bool outside = false;
  if (F::precision == 0 && question.ties != nullptr) {
    const double length = double(question.ties_length);
    outside = !(got >= 0 && got < length);
    const double *row = question.ties + index * question.ties_length;
    got = row[outside ? 0 : (long long)got];
    truth = row[truth >= 0 && truth < length ? (long long)truth : 0];
  }
  double error = got - truth;
  if (outside) {
    error = kLimit;
  } else if (!(fabs(error) <= kLimit)) {
    if (is_finite(got) && is_finite(truth)) {
      error = error < 0 ? -kLimit : kLimit;
    } else {
      answer.nonfinite += !(got == truth || (got != got && truth != truth));
      error = 0;
    }
  }
  const double size = fabs(error), quotient = ratio(size, scale);
  if (quotient > answer.worst) answer.worst = quotient;
  const double cut = quotient < kCut ? quotient : kCut;
  answer.squares += cut * cut;
  answer.signed_sum += (error < 0) != negative ? -cut : cut;
  return Error{size, ulp<F>(truth), scale, spread};
}

// Whether an error exceeds a maximum so far: size / allowed > bound, without the division. The sign of a fused b * allowed - size is exact where nothing is
// subnormal; smaller errors count as larger here. Ties are common, since errors of a few ulp are, and must not take the long way. Without spread all bounds are one.
template <class F, int Tolerances, int Rhos, bool Spread>
static __device__ __forceinline__ bool beyond(const Question<F, Tolerances, Rhos, Spread> &question, const Error &error,
                                              const Answer<F, Tolerances, Rhos> &answer) {
  if constexpr (Rhos == 0) return false;
  const double floor = error.unit > error.scale ? error.unit : error.scale;
  bool found = error.size < 1e-280;
  if constexpr (!Spread) {
    found |= fma(answer.bounds[0], floor, -error.size) < 0 && answer.bounds[0] < kLimit;
  } else {
#pragma unroll
    for (int k = 0; k < Rhos; k++) {
      const double wide = question.rhos[k] * error.spread;
      found |= fma(answer.bounds[k], floor > wide ? floor : wide, -error.size) < 0;
    }
  }
  return found && error.size > 0;
}

template <class F, int Tolerances, int Rhos, bool Spread>
static __device__ __forceinline__ void widen_bounds(const Question<F, Tolerances, Rhos, Spread> &question, const Error &error,
                                                    Answer<F, Tolerances, Rhos> &answer) {
  const double floor = error.unit > error.scale ? error.unit : error.scale;
  if constexpr (!Spread) {
    const double bound = ratio(error.size, floor);
    answer.bounds[0] = bound > answer.bounds[0] ? bound : answer.bounds[0];
    return;
  }
#pragma unroll
  for (int k = 0; k < Rhos; k++) {
    const double wide = question.rhos[k] * error.spread;
    const double bound = ratio(error.size, floor > wide ? floor : wide);
    answer.bounds[k] = bound > answer.bounds[k] ? bound : answer.bounds[k];
  }
}

// Truth, scale and spread of a few elements.
template <int Size>
struct Group {
  double truth[Size], scale[Size], spread[Size];
};

template <int Size, bool Aligned>
static __device__ __forceinline__ void read(const double *__restrict__ from, long long element, int count, double *to) {
  if (Aligned && count >= Size) {
#pragma unroll
    for (int k = 0; k < Size; k += 2) {
      const double2 both = *reinterpret_cast<const double2 *>(from + element + k);
      to[k] = both.x, to[k + 1] = both.y;
    }
  } else {
#pragma unroll
    for (int k = 0; k < Size; k++) to[k] = k < count ? from[element + k] : 0.0;
  }
}

template <int Size, bool Aligned, class Q>
static __device__ __forceinline__ Group<Size> group_at(const Q &question, long long element, int count) {
  Group<Size> group;
  read<Size, Aligned>(question.truth, element, count, group.truth);
  read<Size, Aligned>(question.scale, element, count, group.scale);
  if constexpr (Q::has_spread) {
    read<Size, Aligned>(question.spread, element, count, group.spread);
  } else {
#pragma unroll
    for (int k = 0; k < Size; k++) group.spread[k] = 0;
  }
  return group;
}

template <int Size, class F, int Tolerances, int Rhos, bool Spread>
static __device__ __forceinline__ void measure_group(const Question<F, Tolerances, Rhos, Spread> &question, const Vector &output,
                                                     const Group<Size> &group, int first, long long element, int count,
                                                     Answer<F, Tolerances, Rhos> &answer) {
  Error errors[Size];
  bool any = false;
#pragma unroll
  for (int k = 0; k < Size; k++) {
    if (k < count) {
      const auto item = item_of<typename F::Item>(output, first + k);
      errors[k] = measure<F>(question, item, group.truth[k], group.scale[k], group.spread[k], element + k, answer);
    } else {
      errors[k] = Error{0, 0, 0, 0};
    }
    any |= beyond<F>(question, errors[k], answer);
  }
  if (!any) return;
#pragma unroll 1
  for (int k = 0; k < Size; k++) {
    Error error = errors[0];
#pragma unroll
    for (int j = 1; j < Size; j++) {
      if (j == k) error = errors[j];
    }
    if (beyond<F>(question, error, answer)) widen_bounds<F>(question, error, answer);
  }
}

// One vector, of which the first `count` items are there; the rest are zeros in output and published value alike. Loops over items stay rolled where
// their body is long and seldom reached: code that is compiled once per item takes seconds to compile.
template <class F, bool Full, bool Aligned, int Tolerances, int Rhos, bool Spread>
static __device__ __forceinline__ void visit(const Question<F, Tolerances, Rhos, Spread> &question, const Vector &output, const Vector &published,
                                             long long index, int count, Answer<F, Tolerances, Rhos> &answer) {
  typedef typename F::Item Item;
  constexpr int items = 16 / sizeof(Item);
  constexpr int size = 2;  // more in flight takes the registers that another block needs
  Group<size> group;
  if constexpr (Full) group = group_at<size, Aligned>(question, index * items, count);
  bool suspicious = false;
#pragma unroll
  for (int k = 0; k < items; k++) {
    suspicious |= glance<F>(question, item_of<Item>(output, k), item_of<Item>(published, k), answer);
  }
  if (suspicious) {
#pragma unroll 1
    for (int k = 0; k < items; k++) compare<F>(question, item_of<Item>(output, k), item_of<Item>(published, k), answer);
  }
  if constexpr (Full) {
#pragma unroll
    for (int first = 0; first < items; first += size) {
      if (first > 0) group = group_at<size, Aligned>(question, index * items + first, count - first);
      measure_group<size, F>(question, output, group, first, index * items + first, count - first, answer);
    }
  }
}

enum Fold { kMaximum, kSum, kCount };

static __device__ __forceinline__ Fold fold_of(int field, int tolerances) {
  if (field == kSquares || field == kSigned) return kSum;
  return field == kFlat || field == kWorst || field >= kPlain + tolerances ? kMaximum : kCount;
}

static __device__ __forceinline__ Word folded(Fold fold, Word a, Word b) {
  if (fold == kCount) return a + b;
  const double x = __longlong_as_double((long long)a), y = __longlong_as_double((long long)b);
  return Word(__double_as_longlong(fold == kSum ? x + y : x > y ? x : y));
}

// The fold of a value over the threads of a warp, in lane 0; the order is fixed.
static __device__ __forceinline__ Word over_warp(Fold fold, Word value) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) value = folded(fold, value, __shfl_down_sync(0xFFFFFFFFu, value, step));
  return value;
}

static __device__ __forceinline__ Word word_of(double value) { return Word(__double_as_longlong(value)); }

}  // namespace truekernel_statistics

// `elements` items at `output` and `published`; truth, scale (spread where Spread, ties where given) only where Full. `first`: number of the part's first 16 bytes in
// the digest. `settings`: Tolerances values of atol, of rtol, then Rhos of rho. `partials`: [fields][blocks]. One-dimensional blocks of 256 threads.
template <int Code, bool Full, bool Aligned, int Tolerances, int Rhos, bool Spread>
__global__ void __launch_bounds__(256, Full ? (Spread ? 2 : 3) : 4)
    tk_judge(const void *__restrict__ output, const void *__restrict__ published, const double *__restrict__ truth,
             const double *__restrict__ scale, const double *__restrict__ spread, const double *__restrict__ ties, long long ties_length,
             long long elements, unsigned long long first, int poison, const double *__restrict__ settings,
             unsigned long long *__restrict__ partials) {
  using namespace truekernel_statistics;
  typedef Format<Code> F;
  typedef typename F::Item Item;
  typedef typename F::Compute C;
  constexpr int items = 16 / sizeof(Item);
  constexpr int fields = kPlain + Tolerances + Rhos;
  __shared__ Word rows[fields][kWarps];

  constexpr int bounds = Spread ? Rhos : Rhos > 0;
  Question<F, Tolerances, bounds, Spread> question;
#pragma unroll
  for (int k = 0; k < Tolerances; k++) {
    const double atol = settings[k], rtol = settings[Tolerances + k];
    question.exact[k] = atol == 0 && rtol == 0;
    question.atol[k] = F::round(C(atol));  // torch on a CPU rounds the added scalar, not the factor
    question.rtol[k] = C(rtol);
  }
#pragma unroll
  for (int k = 0; k < bounds; k++) question.rhos[k] = settings[2 * Tolerances + k];
  question.truth = truth, question.scale = scale, question.spread = spread, question.ties = ties;
  question.ties_length = ties_length;
  question.poison = poison != 0;

  Answer<F, Tolerances, bounds> answer;
  const long long whole = elements / items, stride = (long long)gridDim.x * kThreads;
  const int rest = int(elements - whole * items);
  const long long vectors = whole + (rest > 0);
  constexpr int batch = Full ? 1 : 2;  // pairs of loads in flight before the first is looked at
  const long long start = (long long)blockIdx.x * kThreads + threadIdx.x;
  const Word step = Word(stride) * kIndex;
  Word key = keyed(first + start);
  for (long long v = start; v < vectors; v += batch * stride, key += batch * step) {
    Vector outputs[batch], references[batch];
#pragma unroll
    for (int u = 0; u < batch; u++) {
      const long long index = v + u * stride;
      if (index < whole) {
        outputs[u] = vector_at<Item, Aligned>(output, index);
        references[u] = vector_at<Item, Aligned>(published, index);
      } else if (index < vectors) {
        outputs[u] = rest_at<Item>(output, index, rest);
        references[u] = rest_at<Item>(published, index, rest);
      }
    }
#pragma unroll 1
    for (int u = 0; u < batch; u++) {
      const long long index = v + u * stride;
      if (index >= vectors) break;
      const Vector o = u ? outputs[batch - 1] : outputs[0], r = u ? references[batch - 1] : references[0];
      answer.digest += mixed(key + u * step, o.low, o.high);
      visit<F, Full, Aligned>(question, o, r, index, index < whole ? items : rest, answer);
    }
  }

  Word values[fields];
  values[kFlat] = word_of(answer.flat), values[kWorst] = word_of(answer.worst);
  values[kSquares] = word_of(answer.squares), values[kSigned] = word_of(answer.signed_sum);
  values[kNonfinite] = answer.nonfinite, values[kUnwritten] = answer.unwritten, values[kDigest] = answer.digest;
#pragma unroll
  for (int k = 0; k < Tolerances; k++) values[kPlain + k] = answer.mismatches[k];
#pragma unroll
  for (int k = 0; k < Rhos; k++) values[kPlain + Tolerances + k] = word_of(answer.bounds[Spread ? k : 0]);
#pragma unroll 1
  for (int field = 0; field < fields; field++) {
    const Word value = over_warp(fold_of(field, Tolerances), values[field]);
    if (threadIdx.x % 32 == 0) rows[field][threadIdx.x / 32] = value;
  }
  __syncthreads();
  for (int field = threadIdx.x; field < fields; field += kThreads) {
    Word value = rows[field][0];
    for (int warp = 1; warp < kWarps; warp++) value = folded(fold_of(field, Tolerances), value, rows[field][warp]);
    partials[(long long)field * gridDim.x + blockIdx.x] = value;
  }
}

// Folds row `blockIdx.x` of `partials` [fields][blocks] into that word of the state, which it replaces where `replace`. `tolerances` < 0: all fields are counts.
extern "C" __global__ void __launch_bounds__(256)
    tk_combine(const unsigned long long *__restrict__ partials, int blocks, int tolerances, int replace, unsigned long long *__restrict__ state) {
  using namespace truekernel_statistics;
  __shared__ Word rows[kWarps];
  const int field = blockIdx.x;
  const Fold fold = tolerances < 0 ? kCount : fold_of(field, tolerances);
  Word value = 0;  // also the bits of 0.0, which is neutral: maxima are of values >= 0
  for (int k = threadIdx.x; k < blocks; k += kThreads) value = folded(fold, value, partials[(long long)field * blocks + k]);
  value = over_warp(fold, value);
  if (threadIdx.x % 32 == 0) rows[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kWarps; warp++) value = folded(fold, value, rows[warp]);
  state[field] = replace ? value : folded(fold, state[field], value);
}

// The digest alone, of `bytes` bytes at `data`, 16-byte aligned. `partials`: [blocks].
extern "C" __global__ void __launch_bounds__(256)
    tk_digest(const void *__restrict__ data, long long bytes, unsigned long long first, unsigned long long *__restrict__ partials) {
  using namespace truekernel_statistics;
  __shared__ Word rows[kWarps];
  const long long vectors = bytes / 16, stride = (long long)gridDim.x * kThreads;
  const long long start = (long long)blockIdx.x * kThreads + threadIdx.x;
  Word digest = 0;
  for (long long v = start; v < vectors; v += stride) {
    const Vector vector = vector_at<Word, true>(data, v);
    digest += mixed(keyed(first + v), vector.low, vector.high);
  }
  if (start == 0 && bytes > vectors * 16) {
    const Vector vector = rest_at<unsigned char>(data, vectors, int(bytes - vectors * 16));
    digest += mixed(keyed(first + vectors), vector.low, vector.high);
  }
  digest = over_warp(kCount, digest);
  if (threadIdx.x % 32 == 0) rows[threadIdx.x / 32] = digest;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kWarps; warp++) digest += rows[warp];
  partials[blockIdx.x] = digest;
}
