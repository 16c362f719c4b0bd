// Statistics of one execution over raw buffers: the fast copy of truekernel/numerics/statistics.py, whose text is the meaning.
// C++17, no dependencies. Compile with contraction of floating-point expressions off (-ffp-contract=off) and without -ffast-math:
// the comparisons must round as torch does. Counts and maxima equal the Python values exactly; `rms` and `bias` differ in the order of their
// sums only (relative 1e-12 of rms, 1e-9 * sqrt(elements) absolute for bias).
#ifndef TRUEKERNEL_STATISTICS_H
#define TRUEKERNEL_STATISTICS_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

// Codes of element types, in the order of model.ITEM_BYTES.
enum tk_dtype { TK_F32 = 0, TK_F16 = 1, TK_BF16 = 2, TK_F64 = 3, TK_I32 = 4, TK_I64 = 5, TK_U8 = 6 };
// Kinds of output: TK_INDEX has a table `ties` or is compared as TK_VALUE.
enum tk_kind { TK_VALUE = 0, TK_INDEX = 1 };

// One output and what it is compared with. `output` and `published`: `elements` items of `dtype`. `spread` and `ties` may be null.
struct tk_output {
  int32_t dtype;
  int32_t kind;
  int64_t elements;
  const void *output;
  const void *published;
  const double *truth;
  const double *scale;
  const double *spread;
  const double *ties;    // elements x ties_length
  int64_t ties_length;
};

struct tk_tolerance {
  double atol, rtol;
};

// Number of values that tk_statistics writes: flat, nonfinite, worst, rms, bias, unwritten, elements, precision, one for each tolerance, one for each rho.
static inline int tk_statistics_count(int tolerances, int rhos) { return 8 + tolerances + rhos; }

namespace truekernel_statistics {

constexpr double kLimit = 1e300;
constexpr double kCut = 1e6;

template <class To, class From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

inline float half_to_float(uint16_t h) {
  const uint32_t magnitude = uint32_t(h & 0x7FFF) << 13;
  const uint32_t sign = uint32_t(h & 0x8000) << 16;
  if ((h & 0x7C00) == 0x7C00) return bits_as<float>(sign | magnitude | 0x7F800000u);
  return bits_as<float>(sign | bits_as<uint32_t>(bits_as<float>(magnitude) * 0x1p112f));
}

inline float bfloat_to_float(uint16_t b) { return bits_as<float>(uint32_t(b) << 16); }

// Nearest half (ties to even), as a float.
inline float round_to_half(float x) {
  const uint32_t bits = bits_as<uint32_t>(x);
  const uint32_t sign = bits & 0x80000000u, magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return x;
  const float size = bits_as<float>(magnitude);
  float rounded;
  if (size < 0x1p-14f) {
    rounded = (size + 0.5f) - 0.5f;  // spacing of floats in [0.5, 1) is 2^-24, that of subnormal halves
  } else {
    rounded = bits_as<float>((magnitude + 0x0FFFu + ((magnitude >> 13) & 1u)) & 0xFFFFE000u);
    if (rounded > 65504.0f) rounded = std::numeric_limits<float>::infinity();
  }
  return bits_as<float>(sign | bits_as<uint32_t>(rounded));
}

// Nearest bfloat16 (ties to even), as a float.
inline float round_to_bfloat(float x) {
  const uint32_t bits = bits_as<uint32_t>(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return x;
  return bits_as<float>((bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u);
}

// How torch.isclose rounds for each element type. `Compute`: type of the arithmetic; round(): rounding after each operation.
struct Float32 {
  using Item = float;
  using Compute = float;
  static constexpr int precision = 24, least_exponent = -126;
  static Compute load(Item x) { return x; }
  static Compute round(Compute x) { return x; }
};
struct Float16 {
  using Item = uint16_t;
  using Compute = float;
  static constexpr int precision = 11, least_exponent = -14;
  static Compute load(Item x) { return half_to_float(x); }
  static Compute round(Compute x) { return round_to_half(x); }
};
struct Bfloat16 {
  using Item = uint16_t;
  using Compute = float;
  static constexpr int precision = 8, least_exponent = -126;
  static Compute load(Item x) { return bfloat_to_float(x); }
  static Compute round(Compute x) { return round_to_bfloat(x); }
};
struct Float64 {
  using Item = double;
  using Compute = double;
  static constexpr int precision = 53, least_exponent = -1022;
  static Compute load(Item x) { return x; }
  static Compute round(Compute x) { return x; }
};
// torch compares integers in its default dtype, float32, after an exact test for equality.
template <class T>
struct Integer {
  using Item = T;
  using Compute = float;
  static constexpr int precision = 0, least_exponent = 0;
  static Compute load(Item x) { return float(x); }
  static Compute round(Compute x) { return x; }
};

template <class Format>
inline double to_double(typename Format::Item item) {
  if constexpr (Format::precision == 0) return double(item);
  else return double(Format::load(item));
}

template <class Format>
inline bool equal(typename Format::Item a, typename Format::Item b) {
  if constexpr (Format::precision == 0) return a == b;
  else return Format::load(a) == Format::load(b);
}

template <class Format>
int64_t mismatches(const tk_output &t, tk_tolerance tolerance) {
  using C = typename Format::Compute;
  const auto *output = static_cast<const typename Format::Item *>(t.output);
  const auto *published = static_cast<const typename Format::Item *>(t.published);
  const C atol = Format::round(C(tolerance.atol)), rtol = C(tolerance.rtol);  // torch on a CPU rounds the added scalar, not the factor
  constexpr C infinity = std::numeric_limits<C>::infinity();
  const bool exact = tolerance.atol == 0 && tolerance.rtol == 0;
  int64_t count = 0;
  for (int64_t i = 0; i < t.elements; i++) {
    const C o = Format::load(output[i]), r = Format::load(published[i]);
    if constexpr (sizeof(typename Format::Item) == 2) {
      // Far inside of the tolerance no rounding matters: three of them lose less than 2^-6 relative and 2^-22 absolute.
      const C difference = std::fabs(r - o);
      if (difference <= (std::fabs(rtol * o) + atol) * C(0.9375) - C(0x1p-22) && difference < C(30000)) continue;
    }
    const C allowed = Format::round(Format::round(std::fabs(rtol * o)) + atol);
    const C actual = std::fabs(Format::round(r - o));
    const bool near = (actual <= allowed) & (actual < infinity) & !exact;
    count += !(near | equal<Format>(output[i], published[i]));
  }
  return count;
}

// Elements that loops without branches take at a time, so that compilers turn them into vector code.
constexpr int kBlock = 64;
constexpr int kLanes = 8;

inline double flat_of(double o, double r) {
  const double ratio = std::fabs(o - r) / (1.0 + std::fabs(o));
  return std::isfinite(o) && std::isfinite(r) && ratio < kLimit ? ratio : kLimit;
}

template <class Format>
double flat(const tk_output &t) {
  const auto *output = static_cast<const typename Format::Item *>(t.output);
  const auto *published = static_cast<const typename Format::Item *>(t.published);
  double worst = 0;
  for (int64_t start = 0; start < t.elements; start += kBlock) {
    const int n = int(t.elements - start < kBlock ? t.elements - start : kBlock);
    const double least = worst * (1 - 1e-15);  // a quotient under it can't be larger: spares divisions
    int larger = 0;
    for (int j = 0; j < n; j++) {
      const double o = to_double<Format>(output[start + j]), r = to_double<Format>(published[start + j]);
      larger += !((o == r) | (std::fabs(o - r) < least * (1.0 + std::fabs(o))));
    }
    if (!larger) continue;
    for (int j = 0; j < n; j++) {
      const double o = to_double<Format>(output[start + j]), r = to_double<Format>(published[start + j]);
      if (o == r) continue;
      const double value = flat_of(o, r);
      if (value > worst) worst = value;
    }
  }
  return worst;
}

template <class Format>
int64_t unwritten(const tk_output &t) {
  constexpr int size = sizeof(typename Format::Item);
  const auto *output = static_cast<const unsigned char *>(t.output);
  const auto *published = static_cast<const unsigned char *>(t.published);
  unsigned char poison[size];
  std::memset(poison, 0xFF, size);
  int64_t count = 0;
  for (int64_t i = 0; i < t.elements; i++) {
    count += std::memcmp(output + i * size, poison, size) == 0 && std::memcmp(published + i * size, poison, size) != 0;
  }
  return count;
}

// Spacing of the format at a finite value; 0 for integers.
template <class Format>
inline double ulp(double value) {
  if constexpr (Format::precision == 0) {
    return 0.0;
  } else {
    const int biased = int((bits_as<uint64_t>(value) >> 52) & 0x7FF);
    int exponent = biased - 1023;
    if (biased == 0x7FF) exponent = 0;  // any finite number will do: such elements have no error
    if (biased == 0 || exponent < Format::least_exponent) exponent = Format::least_exponent;
    const int step = exponent - Format::precision + 1;
    if (step < -1022) return std::ldexp(1.0, step);  // float64 only
    return bits_as<double>(uint64_t(step + 1023) << 52);
  }
}

// The same for formats narrower than double, without branches.
template <class Format>
inline double ulp_in_range(double value) {
  if constexpr (Format::precision == 0) {
    return 0.0;
  } else {
    const int biased = int((bits_as<uint64_t>(value) >> 52) & 0x7FF);
    const int exponent = biased == 0x7FF ? 0 : biased - 1023;
    const int bounded = exponent < Format::least_exponent ? Format::least_exponent : exponent;
    return bits_as<double>(uint64_t(bounded - Format::precision + 1 + 1023) << 52);
  }
}

inline double ratio(double numerator, double denominator) {
  if (numerator == 0) return 0;
  const double quotient = numerator / denominator;
  return quotient < kLimit ? quotient : kLimit;
}

struct Sums {
  double worst = 0, squares = 0, signed_sum = 0;
  int64_t nonfinite = 0, elements = 0;
};

// What elements [from, to) add, one after the other.
template <class Format>
void errors_singly(const tk_output &t, int64_t from, int64_t to, const double *rhos, int rho_count, Sums &sums, double *bounds) {
  const auto *output = static_cast<const typename Format::Item *>(t.output);
  const bool table = t.kind == TK_INDEX && t.ties != nullptr;
  for (int64_t i = from; i < to; i++) {
    double got = to_double<Format>(output[i]), truth = t.truth[i], error;
    const double sign = truth < 0 ? -1.0 : 1.0;
    bool outside = false;
    if (table) {
      outside = !(got >= 0 && got < double(t.ties_length));
      const double *row = t.ties + i * t.ties_length;
      got = row[outside ? 0 : int64_t(got)];
      truth = row[int64_t(truth)];
    }
    error = got - truth;
    if (outside) {
      error = kLimit;
    } else if (!(std::fabs(error) <= kLimit)) {
      if (std::isfinite(got) && std::isfinite(truth)) {
        error = error < 0 ? -kLimit : kLimit;
      } else {
        sums.nonfinite += !(got == truth || (std::isnan(got) && std::isnan(truth)));
        continue;
      }
    }
    if (error == 0) continue;
    const double size = std::fabs(error), scale = t.scale[i];
    const double quotient = ratio(size, scale);
    if (quotient > sums.worst) sums.worst = quotient;
    const double z = std::copysign(quotient < kCut ? quotient : kCut, error);
    sums.squares += z * z;
    sums.signed_sum += sign * z;
    const double unit = table ? 0.0 : ulp<Format>(truth);
    const double floor = unit > scale ? unit : scale;
    for (int k = 0; k < rho_count; k++) {
      const double wide = t.spread ? rhos[k] * t.spread[i] : 0.0;
      const double bound = ratio(size, floor > wide ? floor : wide);
      if (bound > bounds[k]) bounds[k] = bound;
    }
  }
}

// The same for a whole block of values without branches. Returns false, and adds nothing, when an element needs them.
template <class Format>
bool errors_block(const tk_output &t, int64_t start, const double *rhos, int rho_count, Sums *lanes, double *bounds) {
  const auto *output = static_cast<const typename Format::Item *>(t.output) + start;
  const double *truth = t.truth + start, *scale = t.scale + start;
  double error[kBlock], size[kBlock], quotient[kBlock];
  int special = 0;
  for (int j = 0; j < kBlock; j++) {
    error[j] = to_double<Format>(output[j]) - truth[j];
    size[j] = std::fabs(error[j]);
    special += !(size[j] <= kLimit);
  }
  if (special) return false;
  for (int j = 0; j < kBlock; j++) {
    const double divided = size[j] / scale[j];
    const double limited = divided < kLimit ? divided : kLimit;
    quotient[j] = size[j] == 0 ? 0.0 : limited;
  }
  for (int j = 0; j < kBlock; j += kLanes) {
    for (int lane = 0; lane < kLanes; lane++) {
      const double q = quotient[j + lane], cut = q < kCut ? q : kCut;
      const double z = std::copysign(cut, error[j + lane]);
      lanes[lane].worst = q > lanes[lane].worst ? q : lanes[lane].worst;
      lanes[lane].squares += z * z;
      lanes[lane].signed_sum += truth[j + lane] < 0 ? -z : z;
    }
  }
  double floor[kBlock];
  for (int j = 0; j < kBlock; j++) {
    const double unit = ulp_in_range<Format>(truth[j]);
    floor[j] = unit > scale[j] ? unit : scale[j];
  }
  for (int k = 0; k < rho_count; k++) {
    double allowed[kBlock];
    for (int j = 0; j < kBlock; j++) {
      const double wide = t.spread ? rhos[k] * t.spread[start + j] : 0.0;
      allowed[j] = floor[j] > wide ? floor[j] : wide;
    }
    const double least = bounds[k] * (1 - 1e-15);  // a quotient under it can't be larger: spares divisions
    int larger = 0;
    for (int j = 0; j < kBlock; j++) larger += !(size[j] < least * allowed[j]) & (size[j] > 0);
    if (!larger) continue;
    for (int j = 0; j < kBlock; j++) {
      const double bound = ratio(size[j], allowed[j]);
      if (bound > bounds[k]) bounds[k] = bound;
    }
  }
  return true;
}

template <class Format>
void errors(const tk_output &t, const double *rhos, int rho_count, Sums &sums, double *bounds) {
  const bool table = t.kind == TK_INDEX && t.ties != nullptr;
  sums.elements += t.elements;
  // Double's spacing may be subnormal, which the block's arithmetic on exponents does not know.
  const bool blocks = !table && Format::precision != 53;
  const int64_t whole = blocks ? t.elements / kBlock * kBlock : 0;
  Sums lanes[kLanes];
  for (int64_t start = 0; start < whole; start += kBlock) {
    if (!errors_block<Format>(t, start, rhos, rho_count, lanes, bounds)) {
      errors_singly<Format>(t, start, start + kBlock, rhos, rho_count, sums, bounds);
    }
  }
  errors_singly<Format>(t, whole, t.elements, rhos, rho_count, sums, bounds);
  for (const Sums &lane : lanes) {
    if (lane.worst > sums.worst) sums.worst = lane.worst;
    sums.squares += lane.squares;
    sums.signed_sum += lane.signed_sum;
  }
}

template <class Format>
void one_output(const tk_output &t, const tk_tolerance *tolerances, int tolerance_count, const double *rhos, int rho_count,
                bool poison, Sums &sums, double *values) {
  const double flatness = flat<Format>(t);
  if (flatness > values[0]) values[0] = flatness;
  if (poison) values[5] += double(unwritten<Format>(t));
  for (int k = 0; k < tolerance_count; k++) values[8 + k] += double(mismatches<Format>(t, tolerances[k]));
  if (Format::precision > 0 && (values[7] == 0 || Format::precision < values[7])) values[7] = Format::precision;
  errors<Format>(t, rhos, rho_count, sums, values + 8 + tolerance_count);
}

}  // namespace truekernel_statistics

// Writes tk_statistics_count(...) values, in the order of numerics.statistics.statistic_names. `poison`: whether unwritten elements hold 0xFF bytes.
// Returns 0, or -1 when a dtype code is unknown (nothing is written then).
static inline int tk_statistics(const tk_output *outputs, int output_count, const tk_tolerance *tolerances, int tolerance_count,
                                const double *rhos, int rho_count, int poison, double *values) {
  using namespace truekernel_statistics;
  for (int k = 0; k < output_count; k++) {
    if (outputs[k].dtype < TK_F32 || outputs[k].dtype > TK_U8) return -1;
  }
  for (int k = 0; k < tk_statistics_count(tolerance_count, rho_count); k++) values[k] = 0;
  Sums sums;
  for (int k = 0; k < output_count; k++) {
    const tk_output &t = outputs[k];
    switch (t.dtype) {
      case TK_F32: one_output<Float32>(t, tolerances, tolerance_count, rhos, rho_count, poison, sums, values); break;
      case TK_F16: one_output<Float16>(t, tolerances, tolerance_count, rhos, rho_count, poison, sums, values); break;
      case TK_BF16: one_output<Bfloat16>(t, tolerances, tolerance_count, rhos, rho_count, poison, sums, values); break;
      case TK_F64: one_output<Float64>(t, tolerances, tolerance_count, rhos, rho_count, poison, sums, values); break;
      case TK_I32: one_output<Integer<int32_t>>(t, tolerances, tolerance_count, rhos, rho_count, poison, sums, values); break;
      case TK_I64: one_output<Integer<int64_t>>(t, tolerances, tolerance_count, rhos, rho_count, poison, sums, values); break;
      default: one_output<Integer<uint8_t>>(t, tolerances, tolerance_count, rhos, rho_count, poison, sums, values); break;
    }
  }
  values[1] = double(sums.nonfinite);
  values[2] = sums.worst;
  values[6] = double(sums.elements);
  if (sums.squares > 0) {
    values[3] = std::sqrt(sums.squares / double(sums.elements));
    values[4] = sums.signed_sum / std::sqrt(sums.squares);
  }
  return 0;
}

#endif  // TRUEKERNEL_STATISTICS_H
