// Group normalisation. Several blocks share a group: each leaves the mean and the squared deviations of its slice,
// and the block that draws the last ticket merges them. A second kernel applies the result.

template <int THREADS>
__device__ float block_sum(float value, float* scratch) {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
    if (lane == 0) scratch[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = lane < THREADS / 32 ? scratch[lane] : 0.0f;
        for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
        if (lane == 0) scratch[0] = value;
    }
    __syncthreads();
    value = scratch[0];
    __syncthreads();  // the next call writes scratch again
    return value;
}

// grid (slices, batch * groups); partial [groups, slices, 2]; tickets [groups], zero at first; statistics [groups, 2]
template <int THREADS>
__global__ void group_norm_statistics(const float* __restrict__ x, volatile float* partial, unsigned int* tickets,
                                      float* __restrict__ statistics, int elements, float eps) {
    __shared__ float scratch[THREADS / 32];
    __shared__ bool last;
    const int slices = gridDim.x;
    const int group = blockIdx.y;
    const int length = (elements + slices - 1) / slices;
    const int first = min((int)blockIdx.x * length, elements);
    const int count = min(length, elements - first);
    const float* slice = x + (size_t)group * elements + first;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += THREADS) sum += slice[i];
    const float mean = block_sum<THREADS>(sum, scratch) / max(count, 1);
    float squares = 0.0f;
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const float deviation = slice[i] - mean;
        squares = fmaf(deviation, deviation, squares);
    }
    squares = block_sum<THREADS>(squares, scratch);

    if (threadIdx.x == 0) {
        const size_t slot = 2 * ((size_t)group * slices + blockIdx.x);
        partial[slot] = mean;
        partial[slot + 1] = squares;
        __threadfence();  // the slice must be visible before its ticket is
        last = atomicAdd(&tickets[group], 1u) == (unsigned int)slices - 1;
    }
    __syncthreads();
    if (!last || threadIdx.x != 0) return;

    __threadfence();
    float merged_mean = 0.0f;
    float merged_squares = 0.0f;
    int merged = 0;
    for (int i = 0; i < slices; ++i) {
        const int begin = min(i * length, elements);
        const int size = min(length, elements - begin);
        if (size == 0) continue;
        const size_t slot = 2 * ((size_t)group * slices + i);
        const float delta = partial[slot] - merged_mean;
        const float share = (float)size / (merged + size);
        merged_squares += partial[slot + 1] + delta * delta * merged * share;
        merged_mean += delta * share;
        merged += size;
    }
    statistics[2 * group] = merged_mean;
    statistics[2 * group + 1] = 1.0f / sqrtf(merged_squares / elements + eps);
}

__global__ void group_norm_apply(const float* __restrict__ x, const float* __restrict__ statistics,
                                 const float* __restrict__ weight, const float* __restrict__ bias,
                                 float* __restrict__ y, int channels, int width, int positions, int total) {
    const int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += stride) {
        const int plane = i / positions;  // image * channels + channel
        const int channel = plane % channels;
        const float2 moments = reinterpret_cast<const float2*>(statistics)[plane / width];
        y[i] = (x[i] - moments.x) * moments.y * weight[channel] + bias[channel];
    }
}
