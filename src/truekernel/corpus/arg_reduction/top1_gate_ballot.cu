// The greatest softmax probability of each row and its index, one warp a row and one warp a block. The maximum comes first; the lanes
// then vote, 32 experts at a time, on who holds it, and the first set bit is the answer.
#include <math_constants.h>

template <int WARP>
__global__ void __launch_bounds__(WARP)
top1_gate_ballot(const float* __restrict__ logits, float* __restrict__ gate, long long* __restrict__ expert, int experts) {
    const unsigned int lane = threadIdx.x;
    const float* __restrict__ row = logits + (size_t)blockIdx.x * experts;

    float top = -CUDART_INF_F;
    for (int e = lane; e < experts; e += WARP) {
        top = fmaxf(top, row[e]);
    }
    for (int mask = WARP / 2; mask >= 1; mask /= 2) {
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, mask));
    }

    int winner = -1;
    float sum = 0.0f;
    for (int base = 0; base < experts; base += WARP) {
        const int e = base + lane;
        const float v = e < experts ? row[e] : -CUDART_INF_F;
        sum += expf(v - top);
        const unsigned int holders = __ballot_sync(0xffffffffu, v == top);
        if (winner < 0 && holders != 0) {
            winner = base + __ffs(holders) - 1;
        }
    }
    for (int mask = WARP / 2; mask >= 1; mask /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    }
    if (lane == 0) {
        gate[blockIdx.x] = 1.0f / sum;
        expert[blockIdx.x] = winner;
    }
}
