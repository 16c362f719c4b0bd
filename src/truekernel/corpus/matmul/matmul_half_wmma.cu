// Matrix product of float16 matrices on tensor cores. Four warps compute a tile of 32 x 32 outputs, one 16 x 16
// fragment each. Tiles are staged through shared memory with zeros beyond the edges; sums are float32 and rounded
// once.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int FRAGMENT = 16;
constexpr int TILE = 32;
constexpr int LD_A = FRAGMENT + 8;  // padded rows, still a multiple of 8 halves
constexpr int LD_B = TILE + 8;
constexpr int LD_C = TILE + 4;

__global__ void __launch_bounds__(128) matmul_half_wmma(const __half* __restrict__ a, const __half* __restrict__ b,
                                                        __half* __restrict__ c, int M, int N, int K) {
    __shared__ __align__(32) __half tile_a[TILE * LD_A];
    __shared__ __align__(32) __half tile_b[FRAGMENT * LD_B];
    __shared__ __align__(32) float tile_c[TILE * LD_C];
    const int row0 = blockIdx.y * TILE;
    const int column0 = blockIdx.x * TILE;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * FRAGMENT;
    const int warp_column = warp % 2 * FRAGMENT;
    const __half zero = __float2half(0.0f);

    wmma::fragment<wmma::accumulator, FRAGMENT, FRAGMENT, FRAGMENT, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k0 = 0; k0 < K; k0 += FRAGMENT) {
        for (int i = threadIdx.x; i < TILE * FRAGMENT; i += blockDim.x) {
            const int row = i / FRAGMENT;
            const int k = i % FRAGMENT;
            const bool inside = row0 + row < M && k0 + k < K;
            tile_a[row * LD_A + k] = inside ? a[(size_t)(row0 + row) * K + k0 + k] : zero;
        }
        for (int i = threadIdx.x; i < FRAGMENT * TILE; i += blockDim.x) {
            const int k = i / TILE;
            const int column = i % TILE;
            const bool inside = k0 + k < K && column0 + column < N;
            tile_b[k * LD_B + column] = inside ? b[(size_t)(k0 + k) * N + column0 + column] : zero;
        }
        __syncthreads();
        wmma::fragment<wmma::matrix_a, FRAGMENT, FRAGMENT, FRAGMENT, __half, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, FRAGMENT, FRAGMENT, FRAGMENT, __half, wmma::row_major> right;
        wmma::load_matrix_sync(left, tile_a + warp_row * LD_A, LD_A);
        wmma::load_matrix_sync(right, tile_b + warp_column, LD_B);
        wmma::mma_sync(sum, left, right, sum);
        __syncthreads();
    }

    wmma::store_matrix_sync(tile_c + warp_row * LD_C + warp_column, sum, LD_C, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TILE; i += blockDim.x) {
        const int row = i / TILE;
        const int column = i % TILE;
        if (row0 + row < M && column0 + column < N) {
            c[(size_t)(row0 + row) * N + column0 + column] = __float2half(tile_c[row * LD_C + column]);
        }
    }
}
