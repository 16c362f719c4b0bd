// Unbiased variance of each row, one block a row, two passes over it: the mean, then the sum of squared deviations.

template <int BLOCK>
__device__ __forceinline__ float block_sum(float v, float* warp_sums) {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        v += __shfl_xor_sync(0xffffffff, v, offset);
    }
    __syncthreads();
    if (lane == 0) {
        warp_sums[warp] = v;
    }
    __syncthreads();
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < BLOCK / 32; ++w) {
        total += warp_sums[w];
    }
    return total;
}

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK) row_variance(const float* __restrict__ x, float* __restrict__ y, int cols) {
    __shared__ float warp_sums[BLOCK / 32];
    const float* __restrict__ row = x + (size_t)blockIdx.x * cols;
    // Rows start at a multiple of 16 bytes only where their length is a multiple of four.
    const int cols4 = cols % 4 == 0 ? cols / 4 : 0;
    const float4* __restrict__ row4 = reinterpret_cast<const float4*>(row);

    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols4; i += BLOCK) {
        const float4 v = row4[i];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    for (int i = cols4 * 4 + threadIdx.x; i < cols; i += BLOCK) {
        sum += row[i];
    }
    const float mean = block_sum<BLOCK>(sum, warp_sums) / cols;

    float squares = 0.0f;
    for (int i = threadIdx.x; i < cols4; i += BLOCK) {
        const float4 v = row4[i];
        const float a = v.x - mean, b = v.y - mean, c = v.z - mean, d = v.w - mean;
        squares += (a * a + b * b) + (c * c + d * d);
    }
    for (int i = cols4 * 4 + threadIdx.x; i < cols; i += BLOCK) {
        const float d = row[i] - mean;
        squares += d * d;
    }
    const float total = block_sum<BLOCK>(squares, warp_sums);
    if (threadIdx.x == 0) {
        y[blockIdx.x] = total / (cols - 1);
    }
}
