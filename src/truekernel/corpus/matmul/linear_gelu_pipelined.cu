// Linear layer with a fused epilogue. Both factors are read along K; the tiles are double-buffered, so that one
// barrier a step is enough: while a tile is used, the next one is stored into the other buffer.

__device__ __forceinline__ float gelu(float z) { return 0.5f * z * (1.0f + erff(z * 0.70710678118654752f)); }

template <int TILE>
__device__ __forceinline__ void load_tile(const float* __restrict__ from, float (*tile)[TILE + 1], int row0, int rows,
                                          int k0, int K) {
    const int row = row0 + threadIdx.y;
    const int k = k0 + threadIdx.x;
    tile[threadIdx.y][threadIdx.x] = row < rows && k < K ? from[(size_t)row * K + k] : 0.0f;
}

template <int TILE>
__global__ void linear_gelu_pipelined(const float* __restrict__ x, const float* __restrict__ weight,
                                      const float* __restrict__ bias, float* __restrict__ y, int M, int N, int K,
                                      float divisor) {
    __shared__ float tile_x[2][TILE][TILE + 1];
    __shared__ float tile_w[2][TILE][TILE + 1];
    const int row0 = blockIdx.y * TILE;
    const int column0 = blockIdx.x * TILE;
    const int steps = (K + TILE - 1) / TILE;

    load_tile<TILE>(x, tile_x[0], row0, M, 0, K);
    load_tile<TILE>(weight, tile_w[0], column0, N, 0, K);
    __syncthreads();

    float sum = 0.0f;
    for (int step = 0; step < steps; ++step) {
        const int current = step % 2;
        if (step + 1 < steps) {
            load_tile<TILE>(x, tile_x[1 - current], row0, M, (step + 1) * TILE, K);
            load_tile<TILE>(weight, tile_w[1 - current], column0, N, (step + 1) * TILE, K);
        }
#pragma unroll
        for (int k = 0; k < TILE; ++k) {
            sum = fmaf(tile_x[current][threadIdx.y][k], tile_w[current][threadIdx.x][k], sum);
        }
        __syncthreads();
    }

    const int row = row0 + threadIdx.y;
    const int column = column0 + threadIdx.x;
    if (row < M && column < N) y[(size_t)row * N + column] = gelu((sum + bias[column]) / divisor);
}
