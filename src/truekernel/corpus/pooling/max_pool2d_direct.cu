// Max pooling, one thread an output in a grid-stride loop. The window is cut to the image, so padding never wins;
// NaN does.
#include <math_constants.h>

__global__ void max_pool2d_direct(const float* __restrict__ x, float* __restrict__ y, int total, int H, int W,
                                  int out_h, int out_w, int kernel, int stride, int padding) {
    const int step = gridDim.x * blockDim.x;
    for (int index = blockIdx.x * blockDim.x + threadIdx.x; index < total; index += step) {
        const int ox = index % out_w;
        const int oy = index / out_w % out_h;
        const int plane = index / (out_w * out_h);
        const int top = oy * stride - padding;
        const int left = ox * stride - padding;
        const int y_begin = max(top, 0);
        const int y_end = min(top + kernel, H);
        const int x_begin = max(left, 0);
        const int x_end = min(left + kernel, W);

        const float* in = x + (size_t)plane * H * W;
        float best = -CUDART_INF_F;
        for (int iy = y_begin; iy < y_end; ++iy) {
            for (int ix = x_begin; ix < x_end; ++ix) {
                const float value = in[iy * W + ix];
                if (value > best || isnan(value)) best = value;
            }
        }
        y[index] = best;
    }
}
