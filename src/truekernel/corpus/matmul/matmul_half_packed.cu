// Matrix product of float16 matrices on ordinary cores. A thread computes two neighbouring columns of two rows; B
// is read in pairs where its row length is even, and products are summed in float32.
#include <cuda_fp16.h>

template <int SIDE, int BK>
__global__ void matmul_half_packed(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c,
                                   int M, int N, int K) {
    constexpr int TILE = 2 * SIDE;
    __shared__ float tile_a[TILE][BK + 1];
    __shared__ __half2 tile_b[BK][SIDE];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int thread = ty * SIDE + tx;
    const int row0 = blockIdx.y * TILE;
    const int column0 = blockIdx.x * TILE;
    const bool even = N % 2 == 0;
    const __half zero = __float2half(0.0f);

    float2 upper = make_float2(0.0f, 0.0f);
    float2 lower = make_float2(0.0f, 0.0f);
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = thread; i < TILE * BK; i += SIDE * SIDE) {
            const int row = row0 + i / BK;
            const int k = k0 + i % BK;
            tile_a[i / BK][i % BK] = row < M && k < K ? __half2float(a[(size_t)row * K + k]) : 0.0f;
        }
        for (int i = thread; i < BK * SIDE; i += SIDE * SIDE) {
            const int k = k0 + i / SIDE;
            const int column = column0 + 2 * (i % SIDE);
            const __half* from = b + (size_t)k * N + column;
            __half2 pair = __halves2half2(zero, zero);
            if (k < K && column < N) {
                if (even) {
                    pair = *reinterpret_cast<const __half2*>(from);
                } else {
                    pair = __halves2half2(from[0], column + 1 < N ? from[1] : zero);
                }
            }
            tile_b[i / SIDE][i % SIDE] = pair;
        }
        __syncthreads();
        for (int k = 0; k < BK; ++k) {
            const float2 pair = __half22float2(tile_b[k][tx]);
            const float top = tile_a[ty][k];
            const float bottom = tile_a[ty + SIDE][k];
            upper.x = fmaf(top, pair.x, upper.x);
            upper.y = fmaf(top, pair.y, upper.y);
            lower.x = fmaf(bottom, pair.x, lower.x);
            lower.y = fmaf(bottom, pair.y, lower.y);
        }
        __syncthreads();
    }

    const int column = column0 + 2 * tx;
    for (int part = 0; part < 2; ++part) {
        const int row = row0 + ty + part * SIDE;
        const float2 sum = part == 0 ? upper : lower;
        if (row < M && column < N) c[(size_t)row * N + column] = __float2half(sum.x);
        if (row < M && column + 1 < N) c[(size_t)row * N + column + 1] = __float2half(sum.y);
    }
}
