// c[m, n] = a[m, n] + b[n, m]. A 32 x 32 tile of b goes through shared memory, so that both reads and the write are coalesced.

constexpr int TILE = 32;
constexpr int ROWS = 8;

__global__ void __launch_bounds__(TILE * ROWS)
add_transposed(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m_len, int n_len) {
    // One column more than needed: reads down a column hit 32 different banks.
    __shared__ float tile[TILE][TILE + 1];

    const int m0 = blockIdx.y * TILE;
    const int n0 = blockIdx.x * TILE;

    const int bm = m0 + threadIdx.x;
#pragma unroll
    for (int r = 0; r < TILE; r += ROWS) {
        const int bn = n0 + threadIdx.y + r;
        if (bm < m_len && bn < n_len) {
            tile[threadIdx.y + r][threadIdx.x] = b[(size_t)bn * m_len + bm];
        }
    }
    __syncthreads();

    const int n = n0 + threadIdx.x;
#pragma unroll
    for (int r = 0; r < TILE; r += ROWS) {
        const int m = m0 + threadIdx.y + r;
        if (m < m_len && n < n_len) {
            const size_t i = (size_t)m * n_len + n;
            c[i] = a[i] + tile[threadIdx.x][threadIdx.y + r];
        }
    }
}
