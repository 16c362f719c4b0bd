// The greatest softmax probability of each row and its index, one warp a row. The probability of the maximum is
// 1 / sum(exp(x - max)): the softmax itself is never written.
#include <math_constants.h>

constexpr unsigned int ALL = 0xffffffffu;

__global__ void __launch_bounds__(128)
top1_gate(const float* __restrict__ logits, float* __restrict__ gate, long long* __restrict__ expert, int tokens, int experts) {
    const int lane = threadIdx.x & 31;
    const int warps = blockDim.x >> 5;

    for (int token = blockIdx.x * warps + (threadIdx.x >> 5); token < tokens; token += gridDim.x * warps) {
        const float* __restrict__ row = logits + (size_t)token * experts;

        float top = -CUDART_INF_F;
        int top_index = experts;
        for (int e = lane; e < experts; e += 32) {
            const float v = row[e];
            if (v > top) {
                top = v;
                top_index = e;
            }
        }
#pragma unroll
        for (int mask = 16; mask > 0; mask >>= 1) {
            const float v = __shfl_xor_sync(ALL, top, mask);
            const int i = __shfl_xor_sync(ALL, top_index, mask);
            if (v > top || (v == top && i < top_index)) {
                top = v;
                top_index = i;
            }
        }

        float sum = 0.0f;
        for (int e = lane; e < experts; e += 32) {
            sum += expf(row[e] - top);
        }
#pragma unroll
        for (int mask = 16; mask > 0; mask >>= 1) {
            sum += __shfl_xor_sync(ALL, sum, mask);
        }
        if (lane == 0) {
            gate[token] = 1.0f / sum;
            expert[token] = top_index;
        }
    }
}
