// 2-D convolution, one thread an output pixel. The filter of the block's output channel is read from shared memory;
// taps that fall into the padding are skipped.

template <int KERNEL, int STRIDE, int PADDING>
__global__ void conv2d_direct(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias, float* __restrict__ y, int C, int H, int W, int out_h,
                              int out_w) {
    extern __shared__ float filter[];
    const int o = blockIdx.y;
    const int taps = C * KERNEL * KERNEL;
    for (int i = threadIdx.x; i < taps; i += blockDim.x) filter[i] = weight[(size_t)o * taps + i];
    __syncthreads();

    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= out_h * out_w) return;
    const int top = pixel / out_w * STRIDE - PADDING;
    const int left = pixel % out_w * STRIDE - PADDING;

    float sum = bias[o];
    for (int c = 0; c < C; ++c) {
        const float* plane = x + ((size_t)blockIdx.z * C + c) * H * W;
        const float* taps_c = filter + c * KERNEL * KERNEL;
        for (int ky = 0; ky < KERNEL; ++ky) {
            const int iy = top + ky;
            if (iy < 0 || iy >= H) continue;
#pragma unroll
            for (int kx = 0; kx < KERNEL; ++kx) {
                const int ix = left + kx;
                if (ix >= 0 && ix < W) sum = fmaf(plane[iy * W + ix], taps_c[ky * KERNEL + kx], sum);
            }
        }
    }
    y[((size_t)blockIdx.z * gridDim.y + o) * out_h * out_w + pixel] = sum;
}
