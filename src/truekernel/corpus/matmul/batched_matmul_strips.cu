// Batched matrix product. A thread owns COLUMNS outputs of one row, TILE columns apart, so that reads of B coalesce
// and each value of A that is read from shared memory is used COLUMNS times. The batch is the grid's third axis.

template <int TILE, int COLUMNS>
__global__ void batched_matmul_strips(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                      int M, int N, int K) {
    constexpr int WIDTH = TILE * COLUMNS;
    __shared__ float tile_a[TILE][TILE + 1];
    __shared__ float tile_b[TILE][WIDTH];
    a += (size_t)blockIdx.z * M * K;
    b += (size_t)blockIdx.z * K * N;
    c += (size_t)blockIdx.z * M * N;

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int column0 = blockIdx.x * WIDTH;
    float sum[COLUMNS];
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) sum[j] = 0.0f;

    const int tiles = (K + TILE - 1) / TILE;
    for (int t = 0; t < tiles; ++t) {
        const int k_a = t * TILE + tx;
        const int k_b = t * TILE + ty;
        tile_a[ty][tx] = (row < M && k_a < K) ? a[(size_t)row * K + k_a] : 0.0f;
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
            const int column = column0 + j * TILE + tx;
            tile_b[ty][j * TILE + tx] = (k_b < K && column < N) ? b[(size_t)k_b * N + column] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < TILE; ++k) {
            const float value = tile_a[ty][k];
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) sum[j] += value * tile_b[k][j * TILE + tx];
        }
        __syncthreads();
    }

    if (row >= M) return;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
        const int column = column0 + j * TILE + tx;
        if (column < N) c[(size_t)row * N + column] = sum[j];
    }
}
