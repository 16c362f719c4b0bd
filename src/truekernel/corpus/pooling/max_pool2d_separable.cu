// Max pooling with stride 1 in two steps through shared memory: maxima along rows, then along columns of those, so
// that a window costs 2 * KERNEL comparisons instead of KERNEL * KERNEL.
#include <math_constants.h>

__device__ __forceinline__ float larger(float a, float b) { return (a > b || isnan(a)) ? a : b; }

template <int KERNEL, int PADDING, int TILE_X, int TILE_Y>
__global__ void max_pool2d_separable(const float* __restrict__ x, float* __restrict__ y, int H, int W, int out_h,
                                     int out_w) {
    constexpr int ROWS = TILE_Y + KERNEL - 1;
    constexpr int COLUMNS = TILE_X + KERNEL - 1;
    __shared__ float window[ROWS][COLUMNS];
    __shared__ float row_max[ROWS][TILE_X];
    const int thread = threadIdx.y * TILE_X + threadIdx.x;
    const int left = blockIdx.x * TILE_X - PADDING;
    const int top = blockIdx.y * TILE_Y - PADDING;
    const float* in = x + (size_t)blockIdx.z * H * W;

    for (int i = thread; i < ROWS * COLUMNS; i += TILE_X * TILE_Y) {
        const int iy = top + i / COLUMNS;
        const int ix = left + i % COLUMNS;
        const bool inside = iy >= 0 && iy < H && ix >= 0 && ix < W;
        window[i / COLUMNS][i % COLUMNS] = inside ? in[iy * W + ix] : -CUDART_INF_F;
    }
    __syncthreads();

    for (int row = threadIdx.y; row < ROWS; row += TILE_Y) {
        float best = window[row][threadIdx.x];
#pragma unroll
        for (int k = 1; k < KERNEL; ++k) best = larger(best, window[row][threadIdx.x + k]);
        row_max[row][threadIdx.x] = best;
    }
    __syncthreads();

    const int ox = blockIdx.x * TILE_X + threadIdx.x;
    const int oy = blockIdx.y * TILE_Y + threadIdx.y;
    if (ox >= out_w || oy >= out_h) return;
    float best = row_max[threadIdx.y][threadIdx.x];
#pragma unroll
    for (int k = 1; k < KERNEL; ++k) best = larger(best, row_max[threadIdx.y + k][threadIdx.x]);
    y[((size_t)blockIdx.z * out_h + oy) * out_w + ox] = best;
}
