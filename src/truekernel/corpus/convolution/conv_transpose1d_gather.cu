// Transposed 1-D convolution, gathered: a thread sums what reaches its output, so that nothing is added atomically.
// Input i reaches output i * STRIDE - PADDING + k * DILATION through tap k.

template <int KERNEL, int STRIDE, int PADDING, int DILATION>
__global__ void conv_transpose1d_gather(const float* __restrict__ x, const float* __restrict__ weight,
                                        float* __restrict__ y, int C, int L, int O, int out_l) {
    extern __shared__ float filter[];  // [C, KERNEL], of this block's output channel
    const int o = blockIdx.y;
    for (int i = threadIdx.x; i < C * KERNEL; i += blockDim.x) {
        const int c = i / KERNEL;
        filter[i] = weight[((size_t)c * O + o) * KERNEL + i % KERNEL];
    }
    __syncthreads();

    const float* in = x + (size_t)blockIdx.z * C * L;
    float* out = y + ((size_t)blockIdx.z * O + o) * out_l;
    const int step = gridDim.x * blockDim.x;
    for (int t = blockIdx.x * blockDim.x + threadIdx.x; t < out_l; t += step) {
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < KERNEL; ++k) {
            const int reach = t + PADDING - k * DILATION;
            if (reach < 0 || reach % STRIDE != 0) continue;
            const int i = reach / STRIDE;
            if (i >= L) continue;
            for (int c = 0; c < C; ++c) sum = fmaf(in[(size_t)c * L + i], filter[c * KERNEL + k], sum);
        }
        out[t] = sum;
    }
}
