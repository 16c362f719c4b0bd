// GELU with the error function, four elements a thread and step.

__device__ __forceinline__ float gelu(float x) {
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
}

__global__ void __launch_bounds__(256)
gelu_forward(const float* __restrict__ x, float* __restrict__ y, int n) {
    const int stride = gridDim.x * blockDim.x;
    const int start = blockIdx.x * blockDim.x + threadIdx.x;
    const int n4 = n / 4;

    const float4* __restrict__ x4 = reinterpret_cast<const float4*>(x);
    float4* __restrict__ y4 = reinterpret_cast<float4*>(y);
    for (int i = start; i < n4; i += stride) {
        float4 v = x4[i];
        v.x = gelu(v.x);
        v.y = gelu(v.y);
        v.z = gelu(v.z);
        v.w = gelu(v.w);
        y4[i] = v;
    }

    // At most three elements are left over.
    const int tail = n4 * 4 + start;
    if (tail < n) {
        y[tail] = gelu(x[tail]);
    }
}
