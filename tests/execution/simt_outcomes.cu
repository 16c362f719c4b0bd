// Kernels that go wrong, each next to one that does the same right.
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdlib.h>
#include <unistd.h>

#include <cassert>

namespace cg = cooperative_groups;

// ---- bounds
__global__ void write_at(float *x, int i) {
  x[i] = 1.0f;  // line 13
}
__global__ void read_at(const float *x, float *out, int i) { out[0] = x[i]; }
__global__ void write_input(float *in, float *out) { out[0] = in[3] = 7.0f; }
__global__ void write_dynamic(float *out, int i) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x == 0) dynamic[i] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = dynamic[threadIdx.x];
}
__global__ void neighbouring_arrays(float *out, int i) {
  __shared__ float first[32];
  __shared__ float second[32];
  first[threadIdx.x] = second[threadIdx.x] = 0;
  __syncthreads();
  float *p = first;
  if (threadIdx.x == 0) p[i] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
}
__global__ void two_arrays(float *out, int i, int j) {
  __shared__ float near[32];
  float local[4] = {1, 2, 3, 4};
  near[i] = 1.0f;
  out[threadIdx.x] = near[threadIdx.x] + local[j];
}
__global__ void null_pointer(float *out, int really) { *(really ? (float *)nullptr : out) = 1; }
__global__ void far_pointer(float *out, long long where) { *(volatile float *)((char *)out + where) = 1; }

// ---- alignment
__global__ void vector_at(const float *in, float *out, int i) {
  const float4 v = *reinterpret_cast<const float4 *>(in + i);
  out[threadIdx.x] = v.x + v.w;
}
__global__ void half_pair_at(const __half *in, __half2 *out, int i) {
  out[threadIdx.x] = *reinterpret_cast<const __half2 *>(in + i);
}
__global__ void atomic_at(char *x, int i) { atomicAdd(reinterpret_cast<int *>(x + i), 1); }

// ---- order
__global__ void reverse_block(const int *in, int *out, int synchronise) {
  __shared__ int tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  if (synchronise) __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void same_element(int *out, int spread) { out[spread ? blockIdx.x * blockDim.x + threadIdx.x : 0] = 1; }
__global__ void sum_up(int *out, int atomically) {
  if (atomically)
    atomicAdd(out, 1);
  else
    *out += 1;
}
__global__ void warp_exchange(int *out, int synchronise) {
  __shared__ int tile[32];
  tile[threadIdx.x] = threadIdx.x;
  if (synchronise) __syncwarp();
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
__global__ void half_warp_exchange(int *out) {
  __shared__ int tile[32];
  const unsigned mask = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
  tile[threadIdx.x] = threadIdx.x;
  __syncwarp(mask);
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
__global__ void half_warp_then_all(int *out, int distance) {
  __shared__ int tile[32];
  const unsigned mask = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
  tile[threadIdx.x] = threadIdx.x;
  __syncwarp(mask);
  out[threadIdx.x] = tile[threadIdx.x ^ distance];
}
__global__ void histogram_then_read(int *out, int synchronise) {
  __shared__ unsigned bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[threadIdx.x % 8], 1u);
  if (synchronise) __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = bins[threadIdx.x];
}
__device__ unsigned arrived;
template <bool Fence>
__global__ void last_block(const float *in, float *partial, float *out) {
  __shared__ float sums[64];
  __shared__ bool last;
  sums[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  for (int d = 32; d; d >>= 1) {
    if (threadIdx.x < d) sums[threadIdx.x] += sums[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sums[0];
    if (Fence) __threadfence();
    last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    if (Fence) __threadfence();
    float total = 0;
    for (int i = 0; i < gridDim.x; ++i) total += partial[i];
    *out = total;
  }
}
// Every thread stores and fences, the barrier collects, one thread counts.
__global__ void last_block_all_store(const float *in, float *copy, float *out) {
  __shared__ bool last;
  copy[blockIdx.x * 64 + threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&arrived, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  float sum = 0;
  for (int b = 0; b < gridDim.x; ++b) sum += copy[b * 64 + threadIdx.x];
  out[threadIdx.x] = sum;
}
// Decoupled look-back: each block waits for the one before it.
template <bool Atomic, bool Fence>
__global__ void chained_scan(const int *in, int *out, int *totals, int *flags) {
  __shared__ int base;
  __shared__ int id;
  if (threadIdx.x == 0) id = (int)atomicAdd(&arrived, 1u);
  __syncthreads();
  const int b = id;
  if (threadIdx.x == 0) {
    int before = 0;
    if (b > 0) {
      if (Atomic) {
        while (atomicAdd(&flags[b - 1], 0) == 0) {
        }
      } else {
        volatile int *flag = flags;
        while (flag[b - 1] == 0) {
        }
      }
      __threadfence();
      before = totals[b - 1];
    }
    base = before;
    totals[b] = before + in[b];
    if (Fence) __threadfence();
    if (Atomic)
      atomicExch(&flags[b], 1);
    else
      ((volatile int *)flags)[b] = 1;
  }
  __syncthreads();
  if (threadIdx.x == 0) out[b] = base + in[b];
}
// Under every order in which blocks can start: the first waits for the last.
__global__ void wait_for_last_block(volatile int *flag, int *out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == gridDim.x - 1) {
      __threadfence();
      *flag = 1;
    }
    while (*flag == 0) {
    }
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
__global__ void spin_within_block(int *out) {
  __shared__ volatile int flag;
  __shared__ int value;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 32) {
    value = 42;
    __threadfence_block();
    flag = 1;
  }
  if (threadIdx.x == 0) {
    while (flag == 0) {
    }
    __threadfence_block();
    out[0] = value;
  }
}
__device__ int lock;
__global__ void spin_lock(int *out) {
  for (bool done = false; !done;) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      __threadfence();
      *(volatile int *)out = *(volatile int *)out + 1;
      __threadfence();
      atomicExch(&lock, 0);
      done = true;
    }
  }
}

// ---- first reads
__global__ void read_shared_first(int *out, int write) {
  __shared__ int tile[32];
  if (write) tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}
__global__ void read_scratch_first(int *scratch, int *out, int write) {
  if (write) scratch[threadIdx.x] = 1;
  out[threadIdx.x] = scratch[threadIdx.x];
}

// ---- barriers
__global__ void divergent_barrier(int *out, int limit) {
  if (threadIdx.x < limit) __syncthreads();
  out[threadIdx.x] = 1;
  __syncthreads();
}
__global__ void early_exit(int *out, int n) {
  if (threadIdx.x >= n) return;
  __syncthreads();
  out[threadIdx.x] = 1;
}
__global__ void barrier_and_shuffle(int *out, int limit) {
  int v = threadIdx.x;
  if (threadIdx.x < limit)
    v = __shfl_sync(0xffffffff, v, 0);
  else
    __syncthreads();
  out[threadIdx.x] = v;
  if (threadIdx.x < limit) __syncthreads();
}
__global__ void wrong_mask(int *out, unsigned mask) { out[threadIdx.x] = __shfl_sync(mask, (int)threadIdx.x, 0); }

__global__ void shuffle_from(int *out, int lane) {
  int v = 0;
  if (threadIdx.x < 16) v = __shfl_sync(0xffff, (int)threadIdx.x, lane);
  out[threadIdx.x] = v;
}

// ---- what a host does otherwise
__global__ void divide(int *out, int by) { out[0] = out[1] / by; }
__global__ void shift(int *out, int by) { out[0] = 1 << by; }
__global__ void to_int(int *out, float x) { out[0] = (int)x; }
__global__ void wrap(int *out, int x) { out[0] = x + 1 < x; }

// ---- hostile
__global__ void trap(int *out, int really) {
  if (really) __trap();
  out[0] = 1;
}
__global__ void endless(int *out, int step) {
  for (int i = 0; i < 10; i += step) ((volatile int *)out)[0] = i;
}
__global__ void endless_empty(int *out, int step) {
  for (int i = 0; i < 10; i += step) {
  }
  out[0] = 1;
}
__device__ __noinline__ int recurse(int depth, volatile int *p) { return depth ? recurse(depth - 1, p) + p[0] : 0; }
__global__ void recursion(int *out, int depth) { out[0] = recurse(depth, out); }
__device__ __noinline__ int recurse_after(int depth, volatile int *p) { return depth ? recurse_after(depth - 1, p) + p[0] : 0; }
__global__ void recursion_after_barrier(int *out, int depth) {
  __syncthreads();
  if (threadIdx.x == 17) out[0] = recurse_after(depth, out);
}
__global__ void smash(int *out, int n) {
  int local[8];
  for (int i = 0; i < n; ++i) ((volatile int *)local)[i] = -1;
  out[0] = local[3];
}
__global__ void call_exit(int *out, int code) {
  if (code >= 0) exit(code);
  out[0] = 1;
}
__global__ void call_quick_exit(int *out, int code) { _exit(code); }
__global__ void call_fork(int *out) { out[0] = fork(); }
__global__ void call_abort(int *out) { abort(); }
__global__ void call_kill(int *out) { out[0] = execl("/bin/sh", "sh", (char *)0); }
__global__ void call_address(int *out, long long where) { ((void (*)(int *))where)(out); }
__global__ void big_static(float *out) {
  __shared__ float big[60 * 1024];
  big[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = big[threadIdx.x ^ 1];
}
