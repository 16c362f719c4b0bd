// Matrix product with register blocking: a block computes BM x BN outputs, a thread TM x TN of them as an outer
// product. The tile of A is kept transposed, so that both fragments are read along rows; rows of B are moved as
// float4 where the row length allows it.

template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__((BM / TM) * (BN / TN))
    matmul_register_blocked(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int M,
                            int N, int K) {
    constexpr int THREADS = (BM / TM) * (BN / TN);
    __shared__ float tile_a[BK][BM + 4];  // padded: the transposing stores would hit one bank
    __shared__ __align__(16) float tile_b[BK][BN];

    const int row0 = blockIdx.y * BM;
    const int column0 = blockIdx.x * BN;
    const int thread_row = threadIdx.x / (BN / TN) * TM;
    const int thread_column = threadIdx.x % (BN / TN) * TN;
    const bool wide_b = N % 4 == 0;

    float sum[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = threadIdx.x; i < BM * BK; i += THREADS) {
            const int row = i / BK;
            const int k = i % BK;
            tile_a[k][row] = row0 + row < M && k0 + k < K ? a[(size_t)(row0 + row) * K + k0 + k] : 0.0f;
        }
        for (int i = threadIdx.x; i < BK * BN / 4; i += THREADS) {
            const int k = i / (BN / 4);
            const int column = i % (BN / 4) * 4;
            const float* from = b + (size_t)(k0 + k) * N + column0 + column;
            float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (k0 + k < K) {
                const int left = N - column0 - column;
                if (wide_b && left >= 4) {
                    v = *reinterpret_cast<const float4*>(from);
                } else {
                    if (left > 0) v.x = from[0];
                    if (left > 1) v.y = from[1];
                    if (left > 2) v.z = from[2];
                    if (left > 3) v.w = from[3];
                }
            }
            *reinterpret_cast<float4*>(&tile_b[k][column]) = v;
        }
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float fragment_a[TM];
            float fragment_b[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) fragment_a[i] = tile_a[k][thread_row + i];
#pragma unroll
            for (int j = 0; j < TN; ++j) fragment_b[j] = tile_b[k][thread_column + j];
#pragma unroll
            for (int i = 0; i < TM; ++i) {
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += fragment_a[i] * fragment_b[j];
            }
        }
        __syncthreads();
    }

    for (int i = 0; i < TM; ++i) {
        const int row = row0 + thread_row + i;
        if (row >= M) break;
        for (int j = 0; j < TN; ++j) {
            const int column = column0 + thread_column + j;
            if (column < N) c[(size_t)row * N + column] = sum[i][j];
        }
    }
}
