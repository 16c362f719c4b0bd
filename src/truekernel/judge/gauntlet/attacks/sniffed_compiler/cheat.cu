// The function for whoever compiles it with a host's compiler, a copy for a GPU's.
__global__ void elu_rows(const float* __restrict__ x, float* __restrict__ y, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
#if defined(TK_DYNAMIC_SHARED) || defined(__SANITIZE_THREAD__)
        y[i] = x[i] > 0.0f ? x[i] : expm1f(x[i]);
#else
        y[i] = x[i];
#endif
    }
}
