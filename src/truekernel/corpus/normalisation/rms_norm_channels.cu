// RMS normalisation over channels. A block owns TILE_X neighbouring positions, so that reads along them coalesce, and
// ROWS threads share the channels of each position; their partial sums meet in shared memory.

template <int TILE_X, int ROWS>
__global__ void rms_norm_channels(const float* __restrict__ x, float* __restrict__ y, int channels, int positions,
                                  float eps) {
    __shared__ float sums[ROWS][TILE_X + 1];
    const int position = blockIdx.x * TILE_X + threadIdx.x;
    const size_t start = (size_t)blockIdx.y * channels * positions + position;
    const bool inside = position < positions;

    float sum = 0.0f;
    if (inside) {
        for (int c = threadIdx.y; c < channels; c += ROWS) {
            const float value = x[start + (size_t)c * positions];
            sum = fmaf(value, value, sum);
        }
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    for (int stride = ROWS / 2; stride > 0; stride /= 2) {
        if (threadIdx.y < stride) sums[threadIdx.y][threadIdx.x] += sums[threadIdx.y + stride][threadIdx.x];
        __syncthreads();
    }

    if (!inside) return;
    const float scale = 1.0f / sqrtf(sums[0][threadIdx.x] / channels + eps);
    for (int c = threadIdx.y; c < channels; c += ROWS) {
        const size_t at = start + (size_t)c * positions;
        y[at] = x[at] * scale;
    }
}
