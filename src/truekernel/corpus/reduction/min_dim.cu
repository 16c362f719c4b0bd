// Minimum over the middle axis of [batch, rows, cols]; a NaN wins, as in torch.amin. A block owns COLS columns; the threads of
// one column lie in the same warp, so that a shuffle finishes the job without shared memory.

template <int COLS, int LANES>
__global__ void min_dim(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int lane = threadIdx.x % LANES;
    const int col = blockIdx.x * COLS + threadIdx.x / LANES;
    const float* __restrict__ column = x + (size_t)blockIdx.y * rows * cols + col;

    float best = __int_as_float(0x7f800000);
    if (col < cols) {
        for (int r = lane; r < rows; r += LANES) {
            const float v = column[(size_t)r * cols];
            best = (v < best || v != v) ? v : best;
        }
    }
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset >>= 1) {
        const float v = __shfl_xor_sync(0xffffffffu, best, offset, LANES);
        best = (v < best || v != v) ? v : best;
    }
    if (lane == 0 && col < cols) {
        y[(size_t)blockIdx.y * cols + col] = best;
    }
}
