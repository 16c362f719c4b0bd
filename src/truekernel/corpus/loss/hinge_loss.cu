// Mean of max(0, 1 - p * t) with one label a row. Blocks take rows in turn; a thread's sum runs on over the rows of its block, so
// that there is one reduction and one atomic addition a block.

__global__ void __launch_bounds__(256)
hinge_sum(const float* __restrict__ predictions, const unsigned char* __restrict__ labels, float* __restrict__ loss, int rows, int cols,
          float scale) {
    __shared__ float warp_sums[8];

    float sum = 0.0f;
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        const float sign = labels[row] ? 1.0f : -1.0f;
        const float* __restrict__ p = predictions + (size_t)row * cols;
#pragma unroll 2
        for (int i = threadIdx.x; i < cols; i += blockDim.x) {
            sum += fmaxf(0.0f, 1.0f - p[i] * sign);
        }
    }

#pragma unroll
    for (int mask = 1; mask < 32; mask <<= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    }
    if ((threadIdx.x & 31) == 0) {
        warp_sums[threadIdx.x >> 5] = sum;
    }
    __syncthreads();
    if (threadIdx.x < 8) {
        sum = warp_sums[threadIdx.x];
        sum += __shfl_down_sync(0xffu, sum, 4, 8);
        sum += __shfl_down_sync(0xffu, sum, 2, 8);
        sum += __shfl_down_sync(0xffu, sum, 1, 8);
        if (threadIdx.x == 0) {
            atomicAdd(loss, sum * scale);
        }
    }
}
