// Log-softmax, one block a row, in three passes (maximum, sum, write) with float4 loads where rows are 16-byte
// aligned.
#include <math_constants.h>

struct Largest {
    static __device__ __forceinline__ float identity() { return -CUDART_INF_F; }
    static __device__ __forceinline__ float apply(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
    static __device__ __forceinline__ float identity() { return 0.0f; }
    static __device__ __forceinline__ float apply(float a, float b) { return a + b; }
};

// All threads receive the result. `scratch` holds one float a warp.
template <typename Op>
__device__ float block_reduce(float value, float* scratch) {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int warps = blockDim.x / 32;
    for (int offset = 16; offset > 0; offset /= 2) {
        value = Op::apply(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    __syncthreads();  // earlier readers of scratch are done
    if (lane == 0) scratch[warp] = value;
    __syncthreads();
    value = lane < warps ? scratch[lane] : Op::identity();
    for (int offset = 16; offset > 0; offset /= 2) {
        value = Op::apply(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    return value;
}

__global__ void log_softmax_vector(const float* __restrict__ x, float* __restrict__ y, int features) {
    extern __shared__ float scratch[];
    const float* in = x + (size_t)blockIdx.x * features;
    float* out = y + (size_t)blockIdx.x * features;
    const int quads = features % 4 == 0 ? features / 4 : 0;
    const float4* in4 = reinterpret_cast<const float4*>(in);
    float4* out4 = reinterpret_cast<float4*>(out);

    float peak = -CUDART_INF_F;
    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
        const float4 v = in4[i];
        peak = fmaxf(peak, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    for (int i = 4 * quads + threadIdx.x; i < features; i += blockDim.x) peak = fmaxf(peak, in[i]);
    peak = block_reduce<Largest>(peak, scratch);

    float sum = 0.0f;
    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
        const float4 v = in4[i];
        sum += expf(v.x - peak) + expf(v.y - peak) + expf(v.z - peak) + expf(v.w - peak);
    }
    for (int i = 4 * quads + threadIdx.x; i < features; i += blockDim.x) sum += expf(in[i] - peak);
    const float log_sum = logf(block_reduce<Sum>(sum, scratch));

    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
        float4 v = in4[i];
        v.x = v.x - peak - log_sum;
        v.y = v.y - peak - log_sum;
        v.z = v.z - peak - log_sum;
        v.w = v.w - peak - log_sum;
        out4[i] = v;
    }
    for (int i = 4 * quads + threadIdx.x; i < features; i += blockDim.x) out[i] = in[i] - peak - log_sum;
}
