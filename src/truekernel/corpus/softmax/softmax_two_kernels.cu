// Softmax of rows that are too long for one block: maximum and sum of exponentials of each slice, then a second
// kernel in which every block merges the slices of its row and writes its own.
#include <math_constants.h>

template <int THREADS, bool MAXIMUM>
__device__ float block_reduce(float value, float* scratch) {
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            const float other = scratch[threadIdx.x + half];
            const float own = scratch[threadIdx.x];
            scratch[threadIdx.x] = MAXIMUM ? fmaxf(own, other) : own + other;
        }
        __syncthreads();
    }
    value = scratch[0];
    __syncthreads();
    return value;
}

// A slice of nothing but -inf is measured from zero, where its exponentials vanish without becoming NaN.
__device__ __forceinline__ float origin(float peak) { return peak == -CUDART_INF_F ? 0.0f : peak; }

// grid (slices, rows); partial [rows, slices]: (maximum, sum of exponentials relative to it)
template <int THREADS>
__global__ void softmax_partial(const float* __restrict__ x, float2* __restrict__ partial, int features, int length) {
    __shared__ float scratch[THREADS];
    const float* row = x + (size_t)blockIdx.y * features;
    const int begin = blockIdx.x * length;
    const int end = min(begin + length, features);

    float peak = -CUDART_INF_F;
    for (int i = begin + threadIdx.x; i < end; i += THREADS) peak = fmaxf(peak, row[i]);
    peak = block_reduce<THREADS, true>(peak, scratch);

    const float from = origin(peak);
    float sum = 0.0f;
    for (int i = begin + threadIdx.x; i < end; i += THREADS) sum += expf(row[i] - from);
    sum = block_reduce<THREADS, false>(sum, scratch);
    if (threadIdx.x == 0) partial[blockIdx.y * gridDim.x + blockIdx.x] = make_float2(peak, sum);
}

template <int THREADS>
__global__ void softmax_finish(const float* __restrict__ x, const float2* __restrict__ partial, float* __restrict__ y,
                               int features, int length) {
    const float2* slices = partial + (size_t)blockIdx.y * gridDim.x;
    float peak = -CUDART_INF_F;
    for (int s = 0; s < gridDim.x; ++s) peak = fmaxf(peak, slices[s].x);
    const float from = origin(peak);
    float sum = 0.0f;
    for (int s = 0; s < gridDim.x; ++s) sum += slices[s].y * expf(origin(slices[s].x) - from);

    const size_t start = (size_t)blockIdx.y * features;
    const int begin = blockIdx.x * length;
    const int end = min(begin + length, features);
    const float inverse = 1.0f / sum;
    for (int i = begin + threadIdx.x; i < end; i += THREADS) y[start + i] = expf(x[start + i] - from) * inverse;
}
