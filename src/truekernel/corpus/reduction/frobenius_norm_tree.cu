// y = x / sqrt(sum x^2) in three kernels and without atomics: partial sums of squares by a tree in dynamic shared memory, one
// block that adds the partial sums, a division. Sums are kept in double.

extern __shared__ double tree[];

__device__ __forceinline__ double tree_sum(double v) {
    tree[threadIdx.x] = v;
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) {
            tree[threadIdx.x] += tree[threadIdx.x + half];
        }
        __syncthreads();
    }
    return tree[0];
}

__global__ void partial_squares(const float* __restrict__ x, double* __restrict__ partial, long long n, long long chunk) {
    const long long begin = blockIdx.x * chunk;
    const long long end = begin + chunk < n ? begin + chunk : n;
    double sum = 0.0;
    for (long long i = begin + threadIdx.x; i < end; i += blockDim.x) {
        const double v = x[i];
        sum = fma(v, v, sum);
    }
    sum = tree_sum(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
    }
}

__global__ void total_norm(const double* __restrict__ partial, double* __restrict__ norm, int count) {
    double sum = 0.0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        sum += partial[i];
    }
    sum = tree_sum(sum);
    if (threadIdx.x == 0) {
        norm[0] = sqrt(sum);
    }
}

__global__ void divide_by(const float* __restrict__ x, const double* __restrict__ norm, float* __restrict__ y, long long n) {
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        y[i] = (float)(x[i] / norm[0]);
    }
}
