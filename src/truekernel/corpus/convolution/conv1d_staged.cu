// Strided, dilated 1-D convolution. A block computes TILE_L neighbouring positions of TILE_O output channels; for
// CHUNK input channels at a time the stretch of input that they share and their filters are staged in shared
// memory.

template <int KERNEL, int STRIDE, int DILATION, int TILE_L, int TILE_O, int CHUNK>
__global__ void conv1d_staged(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y,
                              int C, int L, int O, int out_l) {
    constexpr int SPAN = (TILE_L - 1) * STRIDE + (KERNEL - 1) * DILATION + 1;
    constexpr int THREADS = TILE_L * TILE_O;
    __shared__ float stretch[CHUNK][SPAN];
    __shared__ float filters[TILE_O][CHUNK][KERNEL];
    const int thread = threadIdx.y * TILE_L + threadIdx.x;
    const int o0 = blockIdx.y * TILE_O;
    const int l0 = blockIdx.x * TILE_L;
    const int o = o0 + threadIdx.y;
    const int l = l0 + threadIdx.x;

    float sum = 0.0f;
    for (int c0 = 0; c0 < C; c0 += CHUNK) {
        for (int i = thread; i < CHUNK * SPAN; i += THREADS) {
            const int c = c0 + i / SPAN;
            const int position = l0 * STRIDE + i % SPAN;
            const bool inside = c < C && position < L;
            stretch[i / SPAN][i % SPAN] = inside ? x[((size_t)blockIdx.z * C + c) * L + position] : 0.0f;
        }
        for (int i = thread; i < TILE_O * CHUNK * KERNEL; i += THREADS) {
            const int row = i / (CHUNK * KERNEL);
            const int c = i / KERNEL % CHUNK;
            const int k = i % KERNEL;
            const bool inside = o0 + row < O && c0 + c < C;
            filters[row][c][k] = inside ? weight[((size_t)(o0 + row) * C + c0 + c) * KERNEL + k] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int c = 0; c < CHUNK; ++c) {
#pragma unroll
            for (int k = 0; k < KERNEL; ++k) {
                sum = fmaf(stretch[c][threadIdx.x * STRIDE + k * DILATION], filters[threadIdx.y][c][k], sum);
            }
        }
        __syncthreads();
    }
    if (o < O && l < out_l) y[((size_t)blockIdx.z * O + o) * out_l + l] = sum;
}
