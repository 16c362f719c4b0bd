// How many elements of each row exceed a threshold, one warp a row: a ballot for every 32 elements, and lane 0 counts its bits. A row
// without any such element is told by a vote on the way and costs no counting.

constexpr unsigned int ALL = 0xffffffffu;

__global__ void count_above_ballot(const float* __restrict__ x, int* __restrict__ counts, float threshold, int rows, int cols) {
    const int lane = threadIdx.x % warpSize;
    const int row = blockIdx.x * (blockDim.x / warpSize) + threadIdx.x / warpSize;
    if (row >= rows) {
        return;
    }

    int count = 0;
    for (int base = 0; base < cols; base += warpSize) {
        const int i = base + lane;
        const bool above = i < cols && __ldg(x + (size_t)row * cols + i) > threshold;
        if (!__any_sync(ALL, above)) {
            continue;
        }
        count += __popc(__ballot_sync(ALL, above));
    }
    if (lane == 0) {
        counts[row] = count;
    }
}
