// Sum over the middle axis of [batch, rows, cols]. A block owns 32 neighbouring columns; its warps share the rows and meet in
// shared memory. Four accumulators a thread break the dependency chain.

constexpr int COLS = 32;
constexpr int WARPS = 8;

__global__ void __launch_bounds__(COLS * WARPS)
sum_dim(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float partial[WARPS][COLS];

    const int col = blockIdx.x * COLS + threadIdx.x;
    const float* __restrict__ column = x + (size_t)blockIdx.y * rows * cols + col;

    float sum = 0.0f;
    if (col < cols) {
        float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
        int r = threadIdx.y;
        for (; r + 3 * WARPS < rows; r += 4 * WARPS) {
            s0 += column[(size_t)(r + 0 * WARPS) * cols];
            s1 += column[(size_t)(r + 1 * WARPS) * cols];
            s2 += column[(size_t)(r + 2 * WARPS) * cols];
            s3 += column[(size_t)(r + 3 * WARPS) * cols];
        }
        for (; r < rows; r += WARPS) {
            s0 += column[(size_t)r * cols];
        }
        sum = (s0 + s1) + (s2 + s3);
    }
    partial[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();

#pragma unroll
    for (int half = WARPS / 2; half > 0; half /= 2) {
        if (threadIdx.y < half) {
            partial[threadIdx.y][threadIdx.x] += partial[threadIdx.y + half][threadIdx.x];
        }
        __syncthreads();
    }
    if (threadIdx.y == 0 && col < cols) {
        y[(size_t)blockIdx.y * cols + col] = partial[0][threadIdx.x];
    }
}
