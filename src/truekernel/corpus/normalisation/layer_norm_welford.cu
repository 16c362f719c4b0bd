// Layer normalisation, one block a row. Each thread runs Welford's recurrence over its share of the row; the partial
// (count, mean, sum of squared deviations) triples are then merged pairwise, within warps and across them.

struct Moments {
    float count;
    float mean;
    float m2;
};

__device__ __forceinline__ Moments merge(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    const float delta = b.mean - a.mean;
    const float share = b.count / count;
    Moments merged;
    merged.count = count;
    merged.mean = a.mean + delta * share;
    merged.m2 = a.m2 + b.m2 + delta * delta * a.count * share;
    return merged;
}

__device__ __forceinline__ Moments warp_merge(Moments v) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        Moments other;
        other.count = __shfl_down_sync(0xffffffffu, v.count, offset);
        other.mean = __shfl_down_sync(0xffffffffu, v.mean, offset);
        other.m2 = __shfl_down_sync(0xffffffffu, v.m2, offset);
        v = merge(v, other);
    }
    return v;
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    layer_norm_welford(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                       float* __restrict__ y, int features, float eps) {
    constexpr int WARPS = THREADS / 32;
    __shared__ Moments partial[WARPS];
    __shared__ float row_mean;
    __shared__ float row_rstd;

    const size_t start = (size_t)blockIdx.x * features;
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;

    Moments mine = {0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < features; i += THREADS) {
        const float value = x[start + i];
        const float delta = value - mine.mean;
        mine.count += 1.0f;
        mine.mean += delta / mine.count;
        mine.m2 += delta * (value - mine.mean);
    }

    mine = warp_merge(mine);
    if (lane == 0) partial[warp] = mine;
    __syncthreads();
    if (warp == 0) {
        Moments total = {0.0f, 0.0f, 0.0f};
        if (lane < WARPS) total = partial[lane];
        total = warp_merge(total);
        if (lane == 0) {
            row_mean = total.mean;
            row_rstd = rsqrtf(total.m2 / features + eps);
        }
    }
    __syncthreads();

    const float mean = row_mean;
    const float rstd = row_rstd;
    for (int i = threadIdx.x; i < features; i += THREADS) {
        y[start + i] = (x[start + i] - mean) * rstd * weight[i] + bias[i];
    }
}
