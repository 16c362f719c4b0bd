// Cross entropy, one block a row and one pass over it: every thread keeps a running maximum and a sum of exponentials relative to
// it, and pairs of those merge. A second kernel takes the mean of the rows' losses.
#include <math_constants.h>

constexpr int BLOCK = 128;
constexpr int WARPS = BLOCK / 32;

struct LogSum {
    float top;
    float sum;
};

__device__ __forceinline__ LogSum merge(LogSum a, LogSum b) {
    const float top = fmaxf(a.top, b.top);
    // Both empty: exp(-inf - -inf) would be a NaN.
    if (top == -CUDART_INF_F) {
        return a;
    }
    LogSum r;
    r.top = top;
    r.sum = a.sum * expf(a.top - top) + b.sum * expf(b.top - top);
    return r;
}

__device__ __forceinline__ LogSum warp_merge(LogSum v) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) {
        LogSum other;
        other.top = __shfl_down_sync(0xffffffffu, v.top, offset);
        other.sum = __shfl_down_sync(0xffffffffu, v.sum, offset);
        v = merge(v, other);
    }
    return v;
}

__global__ void __launch_bounds__(BLOCK)
row_losses(const float* __restrict__ logits, const long long* __restrict__ targets, float* __restrict__ losses, int classes) {
    __shared__ LogSum warps[WARPS];
    const float* __restrict__ row = logits + (size_t)blockIdx.x * classes;
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;

    LogSum own = {-CUDART_INF_F, 0.0f};
    for (int c = threadIdx.x; c < classes; c += BLOCK) {
        const float v = row[c];
        if (v > own.top) {
            own.sum = own.sum * expf(own.top - v) + 1.0f;
            own.top = v;
        } else {
            own.sum += expf(v - own.top);
        }
    }
    own = warp_merge(own);
    if (lane == 0) {
        warps[warp] = own;
    }
    __syncthreads();
    if (warp == 0) {
        own = lane < WARPS ? warps[lane] : LogSum{-CUDART_INF_F, 0.0f};
        own = warp_merge(own);
        if (lane == 0) {
            // The difference first: two large logits may be close to each other.
            losses[blockIdx.x] = (own.top - row[targets[blockIdx.x]]) + logf(own.sum);
        }
    }
}

__global__ void __launch_bounds__(BLOCK) mean_loss(const float* __restrict__ losses, float* __restrict__ loss, int rows) {
    __shared__ float sums[BLOCK];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < rows; i += BLOCK) {
        sum += losses[i];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        *loss = sums[0] / rows;
    }
}
