// How many elements of each row exceed a threshold, one block a row: the block votes on as many elements as it has threads.

__global__ void count_above_block(const float* __restrict__ x, int* __restrict__ counts, float threshold, int cols) {
    const float* __restrict__ row = x + (size_t)blockIdx.x * cols;
    int count = 0;
    for (int base = 0; base < cols; base += blockDim.x) {
        const int i = base + threadIdx.x;
        count += __syncthreads_count(i < cols && row[i] > threshold);
    }
    if (threadIdx.x == 0) {
        counts[blockIdx.x] = count;
    }
}
