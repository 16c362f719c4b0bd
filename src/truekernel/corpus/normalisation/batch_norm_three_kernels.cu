// Batch normalisation in training mode: partial moments by slices of each channel, one warp a channel to merge
// them, and a pass that applies them. Moments follow Welford's recurrence, so a large common offset costs no
// digits.

struct Moments {
    float count;
    float mean;
    float m2;
};

__device__ Moments merge(const Moments& a, const Moments& b) {
    if (b.count == 0.0f) return a;
    const float count = a.count + b.count;
    const float delta = b.mean - a.mean;
    return {count, a.mean + delta * (b.count / count), a.m2 + b.m2 + delta * delta * (a.count * b.count / count)};
}

// grid (slices, channels); partial [channels, slices]
template <int THREADS>
__global__ void batch_norm_partial(const float* __restrict__ x, float* __restrict__ partial, int batch, int channels,
                                   int positions) {
    __shared__ Moments shared[THREADS];
    const int channel = blockIdx.y;
    const int total = batch * positions;

    Moments mine = {0.0f, 0.0f, 0.0f};
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < total; i += gridDim.x * THREADS) {
        const int image = i / positions;
        const int position = i % positions;
        const float value = x[((size_t)image * channels + channel) * positions + position];
        const float delta = value - mine.mean;
        mine.count += 1.0f;
        mine.mean += delta / mine.count;
        mine.m2 += delta * (value - mine.mean);
    }

    shared[threadIdx.x] = mine;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) shared[threadIdx.x] = merge(shared[threadIdx.x], shared[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        float* slot = partial + 3 * ((size_t)channel * gridDim.x + blockIdx.x);
        slot[0] = shared[0].count;
        slot[1] = shared[0].mean;
        slot[2] = shared[0].m2;
    }
}

// one warp a channel; statistics [channels, 2]: mean, reciprocal standard deviation
__global__ void batch_norm_finalise(const float* __restrict__ partial, float* __restrict__ statistics, int slices,
                                    float eps) {
    const int channel = blockIdx.x;
    Moments mine = {0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < slices; i += 32) {
        const float* slot = partial + 3 * ((size_t)channel * slices + i);
        mine = merge(mine, Moments{slot[0], slot[1], slot[2]});
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        Moments other;
        other.count = __shfl_down_sync(0xffffffffu, mine.count, offset);
        other.mean = __shfl_down_sync(0xffffffffu, mine.mean, offset);
        other.m2 = __shfl_down_sync(0xffffffffu, mine.m2, offset);
        mine = merge(mine, other);
    }
    if (threadIdx.x == 0) {
        statistics[2 * channel] = mine.mean;
        statistics[2 * channel + 1] = rsqrtf(mine.m2 / mine.count + eps);
    }
}

// grid (tiles of positions, channels, batch)
__global__ void batch_norm_apply(const float* __restrict__ x, const float* __restrict__ statistics,
                                 const float* __restrict__ weight, const float* __restrict__ bias,
                                 float* __restrict__ y, int channels, int positions) {
    const int channel = blockIdx.y;
    const size_t start = ((size_t)blockIdx.z * channels + channel) * positions;
    const float mean = statistics[2 * channel];
    const float scale = statistics[2 * channel + 1] * weight[channel];
    const float shift = bias[channel];
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < positions; i += gridDim.x * blockDim.x) {
        y[start + i] = fmaf(x[start + i] - mean, scale, shift);
    }
}
