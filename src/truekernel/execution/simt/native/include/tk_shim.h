// CUDA C++ for a host compiler: force-included before the unmodified kernel source.
#pragma once
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <utility>

#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 4
#define CUDART_VERSION 12040
#define __CUDA_ARCH__ 800

#define __host__
#define __device__
#define __global__ __attribute__((noinline))
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#ifndef __restrict__
#define __restrict__ __restrict
#endif
// A __shared__ variable is thread-local; the runtime answers __tls_get_addr with the running block's memory. In
// `extern __shared__ T x[];` the toolchain puts the next two in place of __shared__ and before the semicolon.
// "used": an array that a kernel reads and never writes must hold poison, not what the optimiser makes of its initial value.
#define __shared__ __attribute__((used)) thread_local
#define TK_DYNAMIC_SHARED __attribute__((visibility("default"))) __thread
#define TK_DYNAMIC_LABEL __asm__("tk_dynamic_shared")

namespace tk_detail {
template <size_t Alignment>
constexpr size_t alignment() {
  return Alignment;
}
template <class Type>
constexpr size_t alignment() {
  return alignof(Type);
}
}  // namespace tk_detail
// `__shared__ alignas(16) float x[4]` is CUDA; standard C++ wants alignas in front of a storage class.
#define alignas(...) __attribute__((aligned(tk_detail::alignment<__VA_ARGS__>())))

#ifndef __clang__
#define __builtin_assume(condition) ((void)0)
#endif

#include "tk_abi.h"

extern "C" {
extern const uint3 threadIdx __asm__("tk_thread_index");
extern const uint3 blockIdx __asm__("tk_block_index");
extern const dim3 blockDim __asm__("tk_block_dim");
extern const dim3 gridDim __asm__("tk_grid_dim");
extern const int tk_variant;
}
static constexpr int warpSize = 32;

#define TK_HERE int tk_line = __builtin_LINE()
#define TK_UNHOOKED __attribute__((no_sanitize("thread")))
#define TK_INLINE_LAMBDA __attribute__((always_inline))
#ifdef __clang__
// Conversions and shifts in the shim itself follow the GPU, whatever a host would check.
#define TK_GPU_RULES \
  __attribute__((no_sanitize("float-cast-overflow", "shift-exponent", "integer-divide-by-zero", "alignment")))
#else
#define TK_GPU_RULES __attribute__((no_sanitize("undefined")))
#endif

#include "tk_vector_types.h"
#include "tk_builtins.h"
#include "tk_math.h"
#include "tk_small_floats.h"
#include "tk_warp.h"
#include "tk_atomics.h"
#include "tk_export.h"

#include "assert.h"

// A GPU's printf goes to a buffer that nobody reads here; the arguments are evaluated all the same.
template <class... Arguments>
static inline int tk_printf(const char *, Arguments &&...) {
  return int(sizeof...(Arguments));
}
namespace std {
using ::tk_printf;
}
#define printf(...) tk_printf(__VA_ARGS__)
#define malloc(bytes) tk_heap_allocate(bytes)
#define free(pointer) tk_heap_free(pointer)

// An assembler of another machine must not see PTX.
#define asm inline_PTX_is_not_supported_on_the_CPU
