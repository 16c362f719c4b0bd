// Inclusive prefix sum of x * mask along each row, one warp a row and one warp a block; every lane takes two neighbours a step.

__global__ void __launch_bounds__(32)
masked_cumsum_warp(const float* __restrict__ x, const unsigned char* __restrict__ mask, float* __restrict__ y, int n) {
    const unsigned int full = 0xffffffffu;
    const int lane = threadIdx.x;
    const size_t row = (size_t)blockIdx.x * n;

    float carry = 0.0f;
    for (int tile = 0; tile < n; tile += 64) {
        const int i = tile + 2 * lane;
        const float first = i < n && mask[row + i] ? x[row + i] : 0.0f;
        const float second = i + 1 < n && mask[row + i + 1] ? x[row + i + 1] : 0.0f;

        float pairs = first + second;
        for (int delta = 1; delta <= 16; delta += delta) {
            const float left = __shfl_up_sync(full, pairs, delta);
            pairs += lane >= delta ? left : 0.0f;
        }
        float before = __shfl_up_sync(full, pairs, 1);
        before = carry + (lane > 0 ? before : 0.0f);

        if (i < n) {
            y[row + i] = before + first;
        }
        if (i + 1 < n) {
            y[row + i + 1] = before + first + second;
        }
        carry += __shfl_sync(full, pairs, 31);
    }
}
