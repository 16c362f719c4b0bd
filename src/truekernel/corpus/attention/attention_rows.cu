// Attention, one block a query: all its scores are kept in shared memory, normalised, and then weigh the values.
// Keys are read as float4 where the head width allows it.
#include <math_constants.h>

template <int THREADS, bool MAXIMUM>
__device__ float block_reduce(float value, float* scratch) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        const float other = __shfl_xor_sync(0xffffffffu, value, offset);
        value = MAXIMUM ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    float result = scratch[0];
#pragma unroll
    for (int w = 1; w < THREADS / 32; ++w) result = MAXIMUM ? fmaxf(result, scratch[w]) : result + scratch[w];
    __syncthreads();
    return result;
}

__device__ __forceinline__ float dot(const float* a, const float* b, int n) {
    float sum = 0.0f;
    int i = 0;
    if (n % 4 == 0) {
        for (; i < n; i += 4) {
            const float4 u = *reinterpret_cast<const float4*>(a + i);
            const float4 v = *reinterpret_cast<const float4*>(b + i);
            sum += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
        }
    }
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// grid (queries, heads)
template <int THREADS>
__global__ void __launch_bounds__(THREADS) attention_rows(const float* __restrict__ q, const float* __restrict__ k,
                                                          const float* __restrict__ v, float* __restrict__ y, int keys,
                                                          int D, float scale) {
    extern __shared__ __align__(16) float shared[];
    __shared__ float scratch[THREADS / 32];
    float* query = shared;        // [D]
    float* weights = shared + D;  // [keys]
    const size_t at = ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * D;
    const size_t head = (size_t)blockIdx.y * keys * D;

    for (int d = threadIdx.x; d < D; d += THREADS) query[d] = q[at + d];
    __syncthreads();

    float peak = -CUDART_INF_F;
    for (int key = threadIdx.x; key < keys; key += THREADS) {
        const float score = dot(query, k + head + (size_t)key * D, D) * scale;
        weights[key] = score;
        peak = fmaxf(peak, score);
    }
    peak = block_reduce<THREADS, true>(peak, scratch);

    float sum = 0.0f;
    for (int key = threadIdx.x; key < keys; key += THREADS) {
        const float weight = expf(weights[key] - peak);
        weights[key] = weight;
        sum += weight;
    }
    sum = block_reduce<THREADS, false>(sum, scratch);

    for (int d = threadIdx.x; d < D; d += THREADS) {
        float value = 0.0f;
        for (int key = 0; key < keys; ++key) value = fmaf(weights[key], v[head + (size_t)key * D + d], value);
        y[at + d] = value / sum;
    }
}
