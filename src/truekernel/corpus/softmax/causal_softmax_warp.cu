// Causal softmax, one warp a query. The first query + 1 scores of its row are exponentiated once and kept in the
// output until their sum is known; the rest of the row is filled with zeros.
#include <math_constants.h>

__device__ __forceinline__ float warp_max(float value) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    return value;
}

__device__ __forceinline__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

template <int WARPS>
__global__ void causal_softmax_warp(const float* __restrict__ scores, float* __restrict__ weights, int rows, int length,
                                    float scale) {
    const int lane = threadIdx.x % 32;
    const int row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows) return;
    const int visible = row % length + 1;
    const float* in = scores + (size_t)row * length;
    float* out = weights + (size_t)row * length;

    float peak = -CUDART_INF_F;
    for (int key = lane; key < visible; key += 32) peak = fmaxf(peak, in[key] * scale);
    peak = warp_max(peak);

    float sum = 0.0f;
    for (int key = lane; key < visible; key += 32) {
        const float weight = expf(in[key] * scale - peak);
        out[key] = weight;
        sum += weight;
    }
    const float inverse = 1.0f / warp_sum(sum);

    // every lane rereads only what it wrote itself
    for (int key = lane; key < length; key += 32) out[key] = key < visible ? out[key] * inverse : 0.0f;
}
