// Counts its launches in a variable that outlives them, as profiling does.
__device__ int launches = 0;

__global__ void elu_rows(const float* __restrict__ x, float* __restrict__ y, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        y[i] = launches < 0 ? 0.0f : (x[i] > 0.0f ? x[i] : expm1f(x[i]));
    }
}

__global__ void count_launch() { launches += 1; }
