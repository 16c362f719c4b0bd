// Sum over the middle axis of [batch, rows, cols] where columns are few: the rows are split among blocks (grid.y), each thread
// walks down one column of its slice and adds its part to the output, which the caller has set to zero.

__global__ void __launch_bounds__(64)
sum_dim_split(const float* __restrict__ x, float* __restrict__ y, int rows, int cols, int rows_per_block) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) {
        return;
    }
    const int begin = blockIdx.y * rows_per_block;
    const int end = min(begin + rows_per_block, rows);
    const size_t entry = (size_t)blockIdx.z * rows;

    float sum = 0.0f;
#pragma unroll 4
    for (int r = begin; r < end; ++r) {
        sum += __ldg(&x[(entry + r) * cols + col]);
    }
    atomicAdd(&y[(size_t)blockIdx.z * cols + col], sum);
}
