// Mean of each float16 plane, one block a plane. Halves are read in pairs where planes have an even length; sums
// are float32 and meet in a tree in shared memory whose last level is done by shuffles.
#include <cuda_fp16.h>

template <int THREADS>
__global__ void __launch_bounds__(THREADS) global_avg_pool_packed(const __half* __restrict__ x, __half* __restrict__ y,
                                                                  int positions) {
    __shared__ float sums[THREADS];
    const int t = threadIdx.x;
    const __half* plane = x + (size_t)blockIdx.x * positions;

    float sum = 0.0f;
    if (positions % 2 == 0) {
        const __half2* pairs = reinterpret_cast<const __half2*>(plane);
        for (int i = t; i < positions / 2; i += THREADS) {
            const float2 pair = __half22float2(pairs[i]);
            sum += pair.x + pair.y;
        }
    } else {
        for (int i = t; i < positions; i += THREADS) sum += __half2float(plane[i]);
    }

    sums[t] = sum;
    __syncthreads();
    for (int width = THREADS / 2; width >= 32; width >>= 1) {
        if (t < width) sums[t] += sums[t + width];
        __syncthreads();
    }
    if (t < 32) {
        sum = sums[t];
        for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
        if (t == 0) y[blockIdx.x] = __float2half(sum / positions);
    }
}
