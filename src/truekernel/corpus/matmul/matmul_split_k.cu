// Matrix product with a long inner axis: SPLITS blocks share a tile of the product, each over its part of K, and a
// second kernel sums their partial products in a fixed order.

// grid (tiles of N, tiles of M, splits); workspace [splits, M, N]
template <int TILE, int BK>
__global__ void matmul_split_partial(const float* __restrict__ a, const float* __restrict__ b,
                                     float* __restrict__ workspace, int M, int N, int K, int span) {
    constexpr int SIDE = TILE / 2;  // threads along a side; each computes 2 x 2 outputs
    __shared__ float tile_a[TILE][BK + 1];
    __shared__ float tile_b[BK][TILE + 1];
    const int row0 = blockIdx.y * TILE;
    const int column0 = blockIdx.x * TILE;
    const int begin = blockIdx.z * span;
    const int end = min(begin + span, K);
    const int thread = threadIdx.y * SIDE + threadIdx.x;

    float sum[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    for (int k0 = begin; k0 < end; k0 += BK) {
        for (int i = thread; i < TILE * BK; i += SIDE * SIDE) {
            const int row = i / BK;
            const int k = i % BK;
            const bool inside = row0 + row < M && k0 + k < end;
            tile_a[row][k] = inside ? a[(size_t)(row0 + row) * K + k0 + k] : 0.0f;
        }
        for (int i = thread; i < BK * TILE; i += SIDE * SIDE) {
            const int k = i / TILE;
            const int column = i % TILE;
            const bool inside = k0 + k < end && column0 + column < N;
            tile_b[k][column] = inside ? b[(size_t)(k0 + k) * N + column0 + column] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < BK; ++k) {
            const float a0 = tile_a[threadIdx.y][k];
            const float a1 = tile_a[threadIdx.y + SIDE][k];
            const float b0 = tile_b[k][threadIdx.x];
            const float b1 = tile_b[k][threadIdx.x + SIDE];
            sum[0][0] = fmaf(a0, b0, sum[0][0]);
            sum[0][1] = fmaf(a0, b1, sum[0][1]);
            sum[1][0] = fmaf(a1, b0, sum[1][0]);
            sum[1][1] = fmaf(a1, b1, sum[1][1]);
        }
        __syncthreads();
    }

    for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
            const int row = row0 + threadIdx.y + i * SIDE;
            const int column = column0 + threadIdx.x + j * SIDE;
            if (row < M && column < N) workspace[((size_t)blockIdx.z * M + row) * N + column] = sum[i][j];
        }
    }
}

__global__ void matmul_split_reduce(const float* __restrict__ workspace, float* __restrict__ c, int elements,
                                    int splits) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x) {
        float sum = 0.0f;
        for (int s = 0; s < splits; ++s) sum += workspace[(size_t)s * elements + i];
        c[i] = sum;
    }
}
