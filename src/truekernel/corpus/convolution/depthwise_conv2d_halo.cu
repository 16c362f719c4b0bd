// Depthwise 2-D convolution. A block loads its input tile with a halo of KERNEL - 1 rows and columns into shared
// memory; the filter of its channel sits in registers.

template <int KERNEL, int TILE_X, int TILE_Y>
__global__ void depthwise_conv2d_halo(const float* __restrict__ x, const float* __restrict__ weight,
                                      float* __restrict__ y, int channels, int H, int W) {
    constexpr int HALO_X = TILE_X + KERNEL - 1;
    constexpr int HALO_Y = TILE_Y + KERNEL - 1;
    __shared__ float tile[HALO_Y][HALO_X];
    const int plane = blockIdx.z;
    const int out_h = H - KERNEL + 1;
    const int out_w = W - KERNEL + 1;
    const int x0 = blockIdx.x * TILE_X;
    const int y0 = blockIdx.y * TILE_Y;
    const float* in = x + (size_t)plane * H * W;

    float filter[KERNEL * KERNEL];
#pragma unroll
    for (int i = 0; i < KERNEL * KERNEL; ++i) filter[i] = __ldg(&weight[plane % channels * KERNEL * KERNEL + i]);

    for (int ty = threadIdx.y; ty < HALO_Y; ty += TILE_Y) {
        for (int tx = threadIdx.x; tx < HALO_X; tx += TILE_X) {
            const bool inside = y0 + ty < H && x0 + tx < W;
            tile[ty][tx] = inside ? in[(y0 + ty) * W + x0 + tx] : 0.0f;
        }
    }
    __syncthreads();

    const int ox = x0 + threadIdx.x;
    const int oy = y0 + threadIdx.y;
    if (ox >= out_w || oy >= out_h) return;
    float sum = 0.0f;
#pragma unroll
    for (int ky = 0; ky < KERNEL; ++ky) {
#pragma unroll
        for (int kx = 0; kx < KERNEL; ++kx) {
            sum += tile[threadIdx.y + ky][threadIdx.x + kx] * filter[ky * KERNEL + kx];
        }
    }
    y[((size_t)plane * out_h + oy) * out_w + ox] = sum;
}
