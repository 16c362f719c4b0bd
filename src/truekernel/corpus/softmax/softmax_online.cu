// Softmax, one block a row, in two passes over memory: maximum and sum of exponentials are found together by
// rescaling the running sum whenever the maximum grows, then the row is read again and written.
#include <math_constants.h>

struct Running {
    float peak;  // largest value so far
    float sum;   // sum of exp(value - peak)
};

__device__ __forceinline__ Running push(Running r, float value) {
    if (value == -CUDART_INF_F) return r;  // adds nothing, and -inf - -inf would be NaN
    const float peak = fmaxf(r.peak, value);
    r.sum = r.sum * expf(r.peak - peak) + expf(value - peak);
    r.peak = peak;
    return r;
}

__device__ __forceinline__ Running merge(Running a, Running b) {
    const float peak = fmaxf(a.peak, b.peak);
    Running merged;
    merged.peak = peak;
    if (peak == -CUDART_INF_F) {
        merged.sum = a.sum + b.sum;
    } else {
        merged.sum = a.sum * expf(a.peak - peak) + b.sum * expf(b.peak - peak);
    }
    return merged;
}

__device__ __forceinline__ Running warp_merge(Running r) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        Running other;
        other.peak = __shfl_xor_sync(0xffffffffu, r.peak, offset);
        other.sum = __shfl_xor_sync(0xffffffffu, r.sum, offset);
        r = merge(r, other);
    }
    return r;
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS) softmax_online(const float* __restrict__ x, float* __restrict__ y,
                                                          int features) {
    constexpr int WARPS = THREADS / 32;
    __shared__ float peaks[WARPS];
    __shared__ float sums[WARPS];

    const float* in = x + (size_t)blockIdx.x * features;
    float* out = y + (size_t)blockIdx.x * features;
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;

    Running mine = {-CUDART_INF_F, 0.0f};
    for (int i = threadIdx.x; i < features; i += THREADS) mine = push(mine, in[i]);

    mine = warp_merge(mine);
    if (lane == 0) {
        peaks[warp] = mine.peak;
        sums[warp] = mine.sum;
    }
    __syncthreads();
    Running row = {peaks[0], sums[0]};
    for (int w = 1; w < WARPS; ++w) row = merge(row, Running{peaks[w], sums[w]});

    const float inverse = 1.0f / row.sum;
    for (int i = threadIdx.x; i < features; i += THREADS) out[i] = expf(in[i] - row.peak) * inverse;
}
