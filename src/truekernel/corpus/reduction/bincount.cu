// How often each label occurs. Every block counts in shared memory, then adds its counts to the output, which the caller has set to
// zero.

extern __shared__ int own[];

__global__ void bincount_shared(const long long* __restrict__ labels, int* __restrict__ counts, int n, int bins) {
    for (int b = threadIdx.x; b < bins; b += blockDim.x) {
        own[b] = 0;
    }
    __syncthreads();

    const int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        atomicAdd(&own[labels[i]], 1);
    }
    __syncthreads();

    for (int b = threadIdx.x; b < bins; b += blockDim.x) {
        if (own[b] > 0) {
            atomicAdd(&counts[b], own[b]);
        }
    }
}
