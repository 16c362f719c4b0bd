// Kullback-Leibler divergence, sum of t (log t - log p) over all elements divided by the number of rows, in two kernels. The sum of
// terms of either sign is kept with its rounding error beside it (Kahan) inside a thread.

constexpr int BLOCK = 128;

__device__ __forceinline__ float divergence(float p, float t) {
    return t > 0.0f ? t * (logf(t) - logf(p)) : 0.0f;
}

__device__ __forceinline__ float tree_sum(float* values) {
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) {
            values[threadIdx.x] += values[threadIdx.x + half];
        }
        __syncthreads();
    }
    return values[0];
}

__global__ void __launch_bounds__(BLOCK)
kl_partial(const float* __restrict__ predictions, const float* __restrict__ targets, float* __restrict__ partial, long long n) {
    __shared__ float values[BLOCK];
    float sum = 0.0f;
    float lost = 0.0f;

    const long long step = (long long)gridDim.x * BLOCK * 2;
    for (long long i = ((long long)blockIdx.x * BLOCK + threadIdx.x) * 2; i < n; i += step) {
        float term;
        if (i + 1 < n) {
            const float2 p = *reinterpret_cast<const float2*>(predictions + i);
            const float2 t = *reinterpret_cast<const float2*>(targets + i);
            term = divergence(p.x, t.x) + divergence(p.y, t.y);
        } else {
            term = divergence(predictions[i], targets[i]);
        }
        const float y = term - lost;
        const float next = sum + y;
        lost = (next - sum) - y;
        sum = next;
    }

    values[threadIdx.x] = sum;
    sum = tree_sum(values);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
    }
}

__global__ void __launch_bounds__(BLOCK) kl_total(const float* __restrict__ partial, float* __restrict__ loss, int count, int rows) {
    __shared__ float values[BLOCK];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += BLOCK) {
        sum += partial[i];
    }
    values[threadIdx.x] = sum;
    sum = tree_sum(values);
    if (threadIdx.x == 0) {
        *loss = sum / rows;
    }
}
