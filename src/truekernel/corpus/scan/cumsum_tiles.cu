// Inclusive prefix sum of each row in three kernels: every block scans one tile (Hillis and Steele, double-buffered in shared
// memory) and notes its total; one block a row scans the totals; a third pass adds to each tile what lies before it.

constexpr int TILE = 256;

// The inclusive prefix sum of all threads' values; `total` is that of the last thread.
__device__ __forceinline__ float scan_block(float v, float (*buffers)[TILE], float& total) {
    const int t = threadIdx.x;
    int from = 0;
    buffers[from][t] = v;
    __syncthreads();
    for (int distance = 1; distance < TILE; distance *= 2) {
        const int to = 1 - from;
        float sum = buffers[from][t];
        if (t >= distance) {
            sum += buffers[from][t - distance];
        }
        buffers[to][t] = sum;
        from = to;
        __syncthreads();
    }
    total = buffers[from][TILE - 1];
    return buffers[from][t];
}

__global__ void __launch_bounds__(TILE)
scan_tiles(const float* __restrict__ x, float* __restrict__ y, float* __restrict__ totals, int n) {
    __shared__ float buffers[2][TILE];
    const int i = blockIdx.x * TILE + threadIdx.x;
    const size_t row = (size_t)blockIdx.y * n;

    float total;
    const float sum = scan_block(i < n ? x[row + i] : 0.0f, buffers, total);
    if (i < n) {
        y[row + i] = sum;
    }
    if (threadIdx.x == 0) {
        totals[blockIdx.y * gridDim.x + blockIdx.x] = total;
    }
}

// before[row][tile] = sum of all earlier tiles of the row: an inclusive scan of the totals moved one place to the right.
__global__ void __launch_bounds__(TILE)
scan_totals(const float* __restrict__ totals, float* __restrict__ before, int tiles) {
    __shared__ float buffers[2][TILE];
    const size_t row = (size_t)blockIdx.x * tiles;

    float carry = 0.0f;
    for (int base = 0; base < tiles; base += TILE) {
        const int i = base + threadIdx.x;
        float total;
        const float sum = scan_block(i > 0 && i < tiles ? totals[row + i - 1] : 0.0f, buffers, total);
        if (i < tiles) {
            before[row + i] = carry + sum;
        }
        carry += total;
        __syncthreads();
    }
}

__global__ void __launch_bounds__(TILE) add_before(float* __restrict__ y, const float* __restrict__ before, int n) {
    const int i = blockIdx.x * TILE + threadIdx.x;
    if (i < n) {
        y[(size_t)blockIdx.y * n + i] += before[blockIdx.y * gridDim.x + blockIdx.x];
    }
}
