// Index of the greatest logit of each row, one block a row; of equal logits the first wins. (value, index) pairs are reduced by
// shuffles inside a warp and through shared memory between warps.
#include <math_constants.h>

constexpr int BLOCK = 256;
constexpr int WARPS = BLOCK / 32;

struct Best {
    float value;
    int index;
};

__device__ __forceinline__ void take(Best& best, float value, int index) {
    if (value > best.value || (value == best.value && index < best.index)) {
        best.value = value;
        best.index = index;
    }
}

__device__ __forceinline__ Best warp_best(Best best) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) {
        const float value = __shfl_down_sync(0xffffffffu, best.value, offset);
        const int index = __shfl_down_sync(0xffffffffu, best.index, offset);
        take(best, value, index);
    }
    return best;
}

__global__ void __launch_bounds__(BLOCK)
argmax_rows(const float* __restrict__ logits, long long* __restrict__ token, int vocab) {
    __shared__ float values[WARPS];
    __shared__ int indices[WARPS];

    const float* __restrict__ row = logits + (size_t)blockIdx.x * vocab;
    const int vectors = vocab % 4 == 0 ? vocab / 4 : 0;

    Best best = {-CUDART_INF_F, 0x7fffffff};
    for (int v = threadIdx.x; v < vectors; v += BLOCK) {
        const float4 q = reinterpret_cast<const float4*>(row)[v];
        take(best, q.x, 4 * v + 0);
        take(best, q.y, 4 * v + 1);
        take(best, q.z, 4 * v + 2);
        take(best, q.w, 4 * v + 3);
    }
    for (int i = 4 * vectors + threadIdx.x; i < vocab; i += BLOCK) {
        take(best, row[i], i);
    }

    best = warp_best(best);
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    if (lane == 0) {
        values[warp] = best.value;
        indices[warp] = best.index;
    }
    __syncthreads();

    if (warp == 0) {
        best.value = lane < WARPS ? values[lane] : -CUDART_INF_F;
        best.index = lane < WARPS ? indices[lane] : 0x7fffffff;
        best = warp_best(best);
        if (lane == 0) {
            token[blockIdx.x] = best.index;
        }
    }
}
