// 2-D convolution as a matrix product: filters [O, C * k * k] times patches [C * k * k, pixels of the batch]. The
// patches are never stored; a block gathers the tile that it needs. A thread computes 2 x 2 outputs.

template <int KERNEL, int STRIDE, int PADDING, int TILE_O, int TILE_P, int BK>
__global__ void __launch_bounds__(TILE_O* TILE_P / 4)
    conv2d_implicit_gemm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                         float* __restrict__ y, int batch, int C, int H, int W, int O, int out_h, int out_w) {
    constexpr int THREADS = TILE_O * TILE_P / 4;
    __shared__ float filters[TILE_O][BK + 1];
    __shared__ float patches[BK][TILE_P];
    const int area = out_h * out_w;
    const int pixels = batch * area;
    const int inner = C * KERNEL * KERNEL;
    const int o0 = blockIdx.y * TILE_O;
    const int p0 = blockIdx.x * TILE_P;
    const int to = threadIdx.x / (TILE_P / 2) * 2;
    const int tp = threadIdx.x % (TILE_P / 2);

    float sum[2][2] = {};
    for (int k0 = 0; k0 < inner; k0 += BK) {
        for (int i = threadIdx.x; i < TILE_O * BK; i += THREADS) {
            const int o = o0 + i / BK;
            const int k = k0 + i % BK;
            filters[i / BK][i % BK] = o < O && k < inner ? weight[(size_t)o * inner + k] : 0.0f;
        }
        for (int i = threadIdx.x; i < BK * TILE_P; i += THREADS) {
            const int k = k0 + i / TILE_P;
            const int p = p0 + i % TILE_P;
            float value = 0.0f;
            if (k < inner && p < pixels) {
                const int c = k / (KERNEL * KERNEL);
                const int ky = k / KERNEL % KERNEL;
                const int kx = k % KERNEL;
                const int image = p / area;
                const int iy = p % area / out_w * STRIDE + ky - PADDING;
                const int ix = p % area % out_w * STRIDE + kx - PADDING;
                if (iy >= 0 && iy < H && ix >= 0 && ix < W) value = x[(((size_t)image * C + c) * H + iy) * W + ix];
            }
            patches[i / TILE_P][i % TILE_P] = value;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float w0 = filters[to][k];
            const float w1 = filters[to + 1][k];
            const float v0 = patches[k][tp];
            const float v1 = patches[k][tp + TILE_P / 2];
            sum[0][0] += w0 * v0;
            sum[0][1] += w0 * v1;
            sum[1][0] += w1 * v0;
            sum[1][1] += w1 * v1;
        }
        __syncthreads();
    }

    for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
            const int o = o0 + to + i;
            const int p = p0 + tp + j * (TILE_P / 2);
            if (o < O && p < pixels) y[((size_t)(p / area) * O + o) * area + p % area] = sum[i][j] + bias[o];
        }
    }
}
