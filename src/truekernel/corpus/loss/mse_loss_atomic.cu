// Mean of squared differences in one kernel: each block reduces by a tree in shared memory and adds its share of the mean to the
// output, which the caller has set to zero.

constexpr int BLOCK = 256;

__global__ void __launch_bounds__(BLOCK)
mse_atomic(const float* __restrict__ predictions, const float* __restrict__ targets, float* __restrict__ loss, int n, float scale) {
    __shared__ float sums[BLOCK];
    const int t = threadIdx.x;

    float sum = 0.0f;
    for (int i = blockIdx.x * BLOCK + t; i < n; i += gridDim.x * BLOCK) {
        const float d = __ldg(predictions + i) - __ldg(targets + i);
        sum = fmaf(d, d, sum);
    }
    sums[t] = sum;
    __syncthreads();

#pragma unroll
    for (int half = BLOCK / 2; half >= 32; half >>= 1) {
        if (t < half) {
            sums[t] += sums[t + half];
        }
        __syncthreads();
    }
    if (t < 32) {
        float v = sums[t];
        v += __shfl_down_sync(0xffffffffu, v, 16);
        v += __shfl_down_sync(0xffffffffu, v, 8);
        v += __shfl_down_sync(0xffffffffu, v, 4);
        v += __shfl_down_sync(0xffffffffu, v, 2);
        v += __shfl_down_sync(0xffffffffu, v, 1);
        if (t == 0) {
            atomicAdd(loss, v * scale);
        }
    }
}
