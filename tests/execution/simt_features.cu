// One small kernel for each feature of CUDA C++ that the shim serves.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <math_constants.h>
#include <mma.h>

#include <cassert>
#include <cfloat>

namespace cg = cooperative_groups;

__shared__ int namespace_scope[64];
__constant__ float weights[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ int counter = 5;

__global__ void shared_at_namespace_scope(int *out) {
  namespace_scope[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = namespace_scope[63 - threadIdx.x];
}

template <typename T, int N>
__global__ void shared_in_template(const T *in, T *out) {
  __shared__ T tile[N];
  __shared__ __align__(16) T other[N];
  tile[threadIdx.x] = in[threadIdx.x];
  other[N - 1 - threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[N - 1 - threadIdx.x] - other[threadIdx.x] + other[0];
}

extern __shared__ float global_dynamic[];
__global__ void dynamic_at_namespace_scope(float *out) {
  global_dynamic[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = global_dynamic[(threadIdx.x + 1) % blockDim.x];
}

__global__ void dynamic_at_block_scope(int *out) {
  extern __shared__ __align__(16) unsigned char bytes[];
  float4 *vectors = reinterpret_cast<float4 *>(bytes);
  vectors[threadIdx.x] = make_float4(threadIdx.x, 1, 2, 3);
  __syncthreads();
  out[threadIdx.x] = (int)vectors[(threadIdx.x + 1) % blockDim.x].x + (int)(reinterpret_cast<size_t>(bytes) % 16);
}

__global__ void alignment_specifier(int *out) {
  __shared__ alignas(16) float a[4];
  struct alignas(8) Pair {
    float x, y;
  };
  a[threadIdx.x & 3] = 1;
  out[threadIdx.x] = (int)(reinterpret_cast<size_t>(a) % 16) + (int)alignof(Pair);
}

__global__ void barrier_reductions(int *out) {
  const int t = threadIdx.x;
  out[t * 3 + 0] = __syncthreads_count(t % 3 == 0);
  out[t * 3 + 1] = __syncthreads_and(t < 1000);
  out[t * 3 + 2] = __syncthreads_or(t == 7);
}

__global__ void shuffles(int *out) {
  const int t = threadIdx.x;
  int *mine = out + t * 8;
  mine[0] = __shfl_sync(0xffffffff, t, 5);
  mine[1] = __shfl_up_sync(0xffffffff, t, 3);
  mine[2] = __shfl_down_sync(0xffffffff, t, 3);
  mine[3] = __shfl_xor_sync(0xffffffff, t, 9);
  mine[4] = __shfl_sync(0xffffffff, t, 11, 8);
  mine[5] = __shfl_up_sync(0xffffffff, t, 3, 8);
  mine[6] = __shfl_down_sync(0xffffffff, t, 3, 8);
  mine[7] = __shfl_xor_sync(0xffffffff, t, 9, 8);
}

__global__ void shuffle_types(double *out) {
  const int t = threadIdx.x;
  double sum = __shfl_sync(0xffffffff, t + 0.25, 3);
  sum += __shfl_sync(0xffffffff, (long long)t << 40, 2);
  sum += __half2float(__shfl_sync(0xffffffff, __float2half(t + 0.5f), 4));
  const __half2 pair = __shfl_xor_sync(0xffffffff, __floats2half2_rn(t, 2 * t), 1);
  sum += __low2float(pair) + __high2float(pair);
  sum += __bfloat162float(__shfl_down_sync(0xffffffff, __float2bfloat16(t), 1));
  out[t] = sum;
}

__global__ void partial_masks(int *out) {
  const int t = threadIdx.x;
  int v = -1;
  if (t < 8)
    v = __shfl_sync(0x000000ff, t * 10, 7);
  else if (t >= 16)
    v = __shfl_xor_sync(0xffff0000, t, 1);
  out[t] = v;
}

__global__ void votes(unsigned *out) {
  const int t = threadIdx.x;
  unsigned *mine = out + t * 7;
  int all;
  mine[0] = __ballot_sync(0xffffffff, t & 1);
  mine[1] = __any_sync(0xffffffff, t == 40);
  mine[2] = __all_sync(0xffffffff, t < 64);
  mine[3] = __match_any_sync(0xffffffff, t % 3);
  mine[4] = __match_all_sync(0xffffffff, 42, &all);
  mine[5] = all;
  mine[6] = __activemask();
}

__global__ void warp_reductions(int *out) {
  const int t = threadIdx.x;
  out[t * 6 + 0] = __reduce_add_sync(0xffffffff, t - 16);
  out[t * 6 + 1] = __reduce_min_sync(0xffffffff, t - 16);
  out[t * 6 + 2] = __reduce_max_sync(0xffffffff, t - 16);
  out[t * 6 + 3] = (int)__reduce_and_sync(0xffffffff, (unsigned)t | 64u);
  out[t * 6 + 4] = (int)__reduce_or_sync(0xffffffff, (unsigned)t);
  out[t * 6 + 5] = (int)__reduce_xor_sync(0xffffffff, 1u << t);
}

__global__ void active_mask_in_branch(unsigned *out) {
  const int t = threadIdx.x;
  out[t] = 0;
  if (t % 4 == 0) out[t] = __activemask();
}

__global__ void atomics(int *i, unsigned *u, unsigned long long *l, float *f, double *d, __half2 *h) {
  atomicAdd(&i[0], 2);
  atomicSub(&i[1], 3);
  atomicMax(&i[2], (int)threadIdx.x);
  atomicMin(&i[3], -(int)threadIdx.x);
  atomicExch(&i[4], 9);
  atomicCAS(&i[5], 0, (int)threadIdx.x + 1);
  atomicAdd_block(&i[6], 1);
  atomicAdd_system(&i[7], 1);
  atomicInc(&u[0], 10);
  atomicDec(&u[1], 10);
  atomicAnd(&u[2], ~(1u << threadIdx.x));
  atomicOr(&u[3], 1u << threadIdx.x);
  atomicXor(&u[4], 1u << threadIdx.x);
  atomicAdd(l, 1ull << 32);
  atomicAdd(f, 0.5f);
  atomicAdd(d, 0.25);
  atomicAdd(h, __floats2half2_rn(1.0f, 2.0f));
}

// The programming guide's way to make any atomic operation: the first read is not atomic.
__device__ float atomic_max_float(float *address, float value) {
  int *as_int = (int *)address;
  int old = *as_int, assumed;
  do {
    assumed = old;
    old = atomicCAS(as_int, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
  } while (assumed != old);
  return __int_as_float(old);
}
__global__ void compare_and_swap_loop(const float *in, float *out) {
  atomic_max_float(out, in[blockIdx.x * blockDim.x + threadIdx.x]);
}

__global__ void cooperative(int *out, int n) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  const int t = block.thread_rank();
  int *mine = out + t * 8;
  mine[0] = cg::reduce(tile, t, cg::plus<int>());
  mine[1] = tile.shfl_down(t, 2);
  mine[2] = tile.thread_rank() * 100 + tile.meta_group_rank();
  mine[3] = tile.ballot(t & 1);
  mine[4] = cg::reduce(tile, t, cg::greater<int>());
  block.sync();
  mine[5] = cg::inclusive_scan(tile, 1);
  mine[6] = mine[7] = 0;
  if (t < n) {
    cg::coalesced_group active = cg::coalesced_threads();
    mine[6] = active.size();
    mine[7] = active.shfl(t, 0) + 1000 * (int)active.thread_rank();
  }
}

__global__ void nested_groups(int *out) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto tile = cg::tiled_partition<8>(warp);
  cg::thread_block_tile<8> copy = tile;
  cg::coalesced_group odd = cg::binary_partition(tile, threadIdx.x & 1);
  int *mine = out + threadIdx.x * 6;
  mine[0] = warp.meta_group_rank() * 100 + warp.meta_group_size();
  mine[1] = tile.meta_group_rank() * 100 + tile.meta_group_size();
  mine[2] = copy.meta_group_rank() * 100 + copy.meta_group_size();
  mine[3] = odd.meta_group_rank() * 100 + odd.meta_group_size();
  mine[4] = odd.size() * 100 + odd.thread_rank();
  mine[5] = tile.thread_rank();
}

__global__ void grid_barrier(int *values, int *out) {
  cg::grid_group grid = cg::this_grid();
  values[grid.thread_rank()] = (int)grid.thread_rank();
  grid.sync();
  out[grid.thread_rank()] = values[grid.size() - 1 - grid.thread_rank()];
}

template <typename Element>
__global__ void matrix_multiply(const Element *a, const Element *b, float *c) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, Element, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, Element, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int k = 0; k < 32; k += 16) {
    wmma::load_matrix_sync(fa, a + k, 32);
    wmma::load_matrix_sync(fb, b + k, 32);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 2.0f;
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

__global__ void three_dimensions(int *out) {
  const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] =
      threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x + 10000 * blockIdx.y + 100000 * blockIdx.z;
}

__global__ void __launch_bounds__(64) device_variables(float *out) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) sum += weights[i];
  const int before = atomicAdd(&counter, 1);
  out[threadIdx.x] = sum + before;
}

__global__ void integer_intrinsics(const unsigned *x, unsigned *out) {
  const unsigned v = x[threadIdx.x];
  unsigned *mine = out + threadIdx.x * 12;
  mine[0] = __popc(v);
  mine[1] = __clz(v);
  mine[2] = __ffs(v);
  mine[3] = __brev(v);
  mine[4] = __funnelshift_l(v, 0x12345678, 8);
  mine[5] = __byte_perm(v, 0xaabbccdd, 0x7531);
  mine[6] = __umulhi(v, 0x87654321);
  mine[7] = __dp4a((int)v, 0x01020304, 7);
  mine[8] = __mul24(v, 3);
  mine[9] = min(v, 77u) + max((int)v, -5);
  mine[10] = __float2int_rn(__uint_as_float(v)) + __float2int_rd(-1.5f);
  mine[11] = __popcll(((unsigned long long)v << 32) | v);
}

__global__ void float_intrinsics(const float *x, float *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  float *mine = out + i * 16;
  mine[0] = __expf(v);
  mine[1] = __logf(fabsf(v));
  mine[2] = rsqrtf(fabsf(v));
  mine[3] = __fdividef(1.0f, v);
  mine[4] = __powf(fabsf(v), 0.3f);
  mine[5] = __sinf(v);
  mine[6] = __frcp_rn(v);
  mine[7] = __fadd_rz(v, 1e-3f);
  mine[8] = __fadd_ru(v, 1e-3f);
  mine[9] = __fmul_rd(v, v);
  mine[10] = __saturatef(v);
  mine[11] = sinpif(v);
  mine[12] = normcdff(v);
  mine[13] = erff(v) + tanhf(v) + fdimf(v, 1.0f) + cospif(v);
  mine[14] = __fmaf_rz(v, v, 1.0f);
  float s, c;
  sincosf(v, &s, &c);
  mine[15] = s * c;
}

__global__ void half_arithmetic(const __half *a, const __half *b, __half *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i * 6 + 0] = a[i] + b[i];
  out[i * 6 + 1] = __hmul(a[i], b[i]);
  out[i * 6 + 2] = a[i] / b[i];
  out[i * 6 + 3] = __hfma(a[i], b[i], a[i]);
  out[i * 6 + 4] = hsqrt(__habs(a[i]));
  out[i * 6 + 5] = __float2half(fmaf(__half2float(a[i]), 3.0f, 1.0f));
}

__global__ void bfloat_arithmetic(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i * 4 + 0] = a[i] + b[i];
  out[i * 4 + 1] = a[i] * b[i];
  out[i * 4 + 2] = __hfma(a[i], b[i], a[i]);
  out[i * 4 + 3] = __float2bfloat16(__bfloat162float(a[i]) / 3.0f);
}

__global__ void half_pairs(const __half2 *a, __half2 *out) {
  const int i = threadIdx.x;
  const __half2 one = __float2half2_rn(1.0f);
  out[i] = __hfma2(a[i], a[i], __hadd2(one, __lowhigh2highlow(a[i])));
}

__global__ void vector_loads(const float4 *in, float4 *out) {
  const float4 v = __ldg(in + threadIdx.x);
  __stcs(out + threadIdx.x, make_float4(v.w, v.z, v.y, v.x));
}

__global__ void shared_halves(float *out) {
  __shared__ __half tile[64];
  __shared__ float4 vectors[2];
  union {
    float4 vector;
    float each[4];
  } both;
  tile[threadIdx.x] = __int2half_rn(threadIdx.x);
  if (threadIdx.x < 2) vectors[threadIdx.x] = make_float4(0, 0, 0, threadIdx.x);
  __syncthreads();
  both.vector = vectors[1];
  float4 zero = {0.0f, 0.0f, 0.0f, 0.0f};
  out[threadIdx.x] = __half2float(tile[63 - threadIdx.x]) + both.each[3] + zero.w;
}

__global__ void device_heap(int *out) {
  int *mine = (int *)malloc(sizeof(int));
  *mine = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = *mine + (malloc(size_t(1) << 30) == nullptr);
  free(mine);
}

// Two stages: the next tile is on its way while this one is used.
template <bool Wait>
__global__ void double_buffer(const float4 *in, float *out) {
  __shared__ float4 stage[2][32];
  const int t = threadIdx.x;
  float sum = 0;
  __pipeline_memcpy_async(&stage[0][t], &in[t], sizeof(float4));
  __pipeline_commit();
  for (int k = 0; k < 4; ++k) {
    if (k < 3) __pipeline_memcpy_async(&stage[(k + 1) & 1][t], &in[(k + 1) * 32 + t], sizeof(float4));
    __pipeline_commit();
    if (Wait) __pipeline_wait_prior(1);
    __syncthreads();
    sum += stage[k & 1][(t + 1) % 32].x;
    __syncthreads();
  }
  out[t] = sum;
}

__global__ void lowest_of_limits(float *out) { out[threadIdx.x] = -FLT_MAX; }

__global__ void printing_and_asserting(int *out) {
  printf("%d\n", out[threadIdx.x] = 3);
  assert(threadIdx.x < 64);
}
