// Matrix product with a long inner axis, partial sums added atomically. A block takes ROWS rows of A over one slice
// of K into shared memory and streams B past it, one thread a column.

template <int ROWS, int SLICE>
__global__ void matmul_atomic_k(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int M,
                                int N, int K) {
    __shared__ float rows[SLICE][ROWS];
    const int row0 = blockIdx.y * ROWS;
    const int k0 = blockIdx.z * SLICE;
    const int depth = min(SLICE, K - k0);

    for (int i = threadIdx.x; i < ROWS * depth; i += blockDim.x) {
        const int row = i / depth;
        const int k = i % depth;
        rows[k][row] = row0 + row < M ? a[(size_t)(row0 + row) * K + k0 + k] : 0.0f;
    }
    __syncthreads();

    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= N) return;
    float sum[ROWS] = {};
    const float* from = b + (size_t)k0 * N + column;
    for (int k = 0; k < depth; ++k) {
        const float value = from[(size_t)k * N];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) sum[r] = fmaf(rows[k][r], value, sum[r]);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (row0 + r < M) atomicAdd(&c[(size_t)(row0 + r) * N + column], sum[r]);
    }
}
