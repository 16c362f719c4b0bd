// Cross entropy, one warp a row and two passes over it: the maximum, then the sum of exponentials. The rows' shares of the mean
// are added to the output, which the caller has set to zero.
#include <math_constants.h>

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) {
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, mask));
    }
    return v;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) {
        v += __shfl_xor_sync(0xffffffffu, v, mask);
    }
    return v;
}

__global__ void cross_entropy_warp(const float* __restrict__ logits, const long long* __restrict__ targets, float* __restrict__ loss,
                                   int rows, int classes) {
    const int lane = threadIdx.x;
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) {
        return;
    }
    const float* __restrict__ x = logits + (size_t)row * classes;

    float top = -CUDART_INF_F;
    for (int c = lane; c < classes; c += 32) {
        top = fmaxf(top, x[c]);
    }
    top = warp_max(top);

    float sum = 0.0f;
    for (int c = lane; c < classes; c += 32) {
        sum += expf(x[c] - top);
    }
    sum = warp_sum(sum);

    if (lane == 0) {
        const float own = logf(sum) + (top - x[targets[row]]);
        atomicAdd(loss, own / rows);
    }
}
