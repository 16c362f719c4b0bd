// Average pooling, one thread an output on a 2-D block, one grid layer a plane. The divisor is the part of the
// window that lies in the image.

__global__ void avg_pool2d_windows(const float* __restrict__ x, float* __restrict__ y, int H, int W, int out_h,
                                   int out_w, int kernel, int stride, int padding) {
    const int ox = blockIdx.x * blockDim.x + threadIdx.x;
    const int oy = blockIdx.y * blockDim.y + threadIdx.y;
    if (ox >= out_w || oy >= out_h) return;
    const int y_begin = max(oy * stride - padding, 0);
    const int y_end = min(oy * stride - padding + kernel, H);
    const int x_begin = max(ox * stride - padding, 0);
    const int x_end = min(ox * stride - padding + kernel, W);

    const float* in = x + (size_t)blockIdx.z * H * W;
    float sum = 0.0f;
    for (int iy = y_begin; iy < y_end; ++iy) {
        for (int ix = x_begin; ix < x_end; ++ix) sum += in[iy * W + ix];
    }
    const int count = (y_end - y_begin) * (x_end - x_begin);
    y[((size_t)blockIdx.z * out_h + oy) * out_w + ox] = sum / count;
}
