// Matrix product, one thread an output element; square tiles of both factors go through shared memory.

template <int TILE>
__global__ void matmul_tiled(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int M,
                             int N, int K) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        const int k_a = k0 + threadIdx.x;
        const int k_b = k0 + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = row < M && k_a < K ? a[(size_t)row * K + k_a] : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] = k_b < K && column < N ? b[(size_t)k_b * N + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k) sum = fmaf(tile_a[threadIdx.y][k], tile_b[k][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < M && column < N) c[(size_t)row * N + column] = sum;
}
