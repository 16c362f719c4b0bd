// Index of the least value along the middle axis of [batch, rows, cols]. A block of COLS x LANES threads owns COLS columns; lane
// y looks at rows y, y + LANES, ...; the lanes of a column meet in shared memory, where the smaller index wins a tie.
#include <math_constants.h>

template <int COLS, int LANES>
__global__ void __launch_bounds__(COLS * LANES)
argmin_dim(const float* __restrict__ x, long long* __restrict__ index, int rows, int cols) {
    __shared__ float values[LANES][COLS];
    __shared__ int where[LANES][COLS];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int col = blockIdx.x * COLS + tx;
    const bool inside = col < cols;

    float best = CUDART_INF_F;
    int best_row = rows;
    if (inside) {
        const float* p = x + ((size_t)blockIdx.y * rows + ty) * cols + col;
        for (int r = ty; r < rows; r += LANES) {
            // Rows come in rising order: a later equal value never replaces an earlier one.
            if (*p < best || best_row == rows) {
                best = *p;
                best_row = r;
            }
            p += (size_t)LANES * cols;
        }
    }
    values[ty][tx] = best;
    where[ty][tx] = best_row;
    __syncthreads();

    for (int half = LANES / 2; half > 0; half >>= 1) {
        if (ty < half) {
            const float v = values[ty + half][tx];
            const int r = where[ty + half][tx];
            if (v < values[ty][tx] || (v == values[ty][tx] && r < where[ty][tx])) {
                values[ty][tx] = v;
                where[ty][tx] = r;
            }
        }
        __syncthreads();
    }
    if (ty == 0 && inside) {
        index[(size_t)blockIdx.y * cols + col] = where[0][tx];
    }
}
