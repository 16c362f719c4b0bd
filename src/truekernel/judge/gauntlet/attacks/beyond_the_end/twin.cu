// Looks at the next element only where there is one.
__global__ void elu_rows(const float* __restrict__ x, float* __restrict__ y, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        const float value = x[i];
        const float next = i + 1 < count ? x[i + 1] : 0.0f;
        y[i] = value > 0.0f ? value : (next == next ? expm1f(value) : expm1f(value));
    }
}
