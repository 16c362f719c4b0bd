// Triplet margin loss: both distances of a row in one pass, one block a row, then the mean over rows in a single warp.

constexpr int BLOCK = 128;

__device__ __forceinline__ float2 warp_sum(float2 v) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) {
        v.x += __shfl_xor_sync(0xffffffffu, v.x, offset);
        v.y += __shfl_xor_sync(0xffffffffu, v.y, offset);
    }
    return v;
}

__global__ void __launch_bounds__(BLOCK)
triplet_rows(const float* __restrict__ anchor, const float* __restrict__ positive, const float* __restrict__ negative,
             float* __restrict__ losses, float margin, float eps, int cols) {
    __shared__ float2 warps[BLOCK / 32];
    const size_t row = (size_t)blockIdx.x * cols;

    float2 squares = make_float2(0.0f, 0.0f);
    for (int i = threadIdx.x; i < cols; i += BLOCK) {
        const float a = anchor[row + i];
        const float dp = a - positive[row + i] + eps;
        const float dn = a - negative[row + i] + eps;
        squares.x += dp * dp;
        squares.y += dn * dn;
    }
    squares = warp_sum(squares);
    if (threadIdx.x % 32 == 0) {
        warps[threadIdx.x / 32] = squares;
    }
    __syncthreads();

    if (threadIdx.x == 0) {
        float2 total = warps[0];
        for (int w = 1; w < BLOCK / 32; ++w) {
            total.x += warps[w].x;
            total.y += warps[w].y;
        }
        losses[blockIdx.x] = fmaxf(sqrtf(total.x) - sqrtf(total.y) + margin, 0.0f);
    }
}

__global__ void __launch_bounds__(32) triplet_mean(const float* __restrict__ losses, float* __restrict__ loss, int rows) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < rows; i += 32) {
        sum += losses[i];
    }
    sum = warp_sum(make_float2(sum, 0.0f)).x;
    if (threadIdx.x == 0) {
        *loss = sum / rows;
    }
}
