// softplus(x) = max(x, 0) + log1p(exp(-|x|)): exp never overflows, log1p keeps small results exact.

__device__ __forceinline__ float softplus(float x) {
    return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
}

__global__ void softplus_forward(const float* __restrict__ x, float* __restrict__ y, long long n) {
    const long long pair = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long i = pair * 2;
    if (i + 1 < n) {
        const float2 v = reinterpret_cast<const float2*>(x)[pair];
        reinterpret_cast<float2*>(y)[pair] = make_float2(softplus(v.x), softplus(v.y));
    } else if (i < n) {
        y[i] = softplus(x[i]);
    }
}
