// Attention without storing scores. The warps of a block take one query each and share tiles of 32 keys and values
// in shared memory; a lane scores one key of the tile. Running maximum, sum and output are rescaled from tile to
// tile.
#include <math_constants.h>

constexpr int KEYS = 32;  // keys in a tile, one a lane

__device__ __forceinline__ float warp_max(float value) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    return value;
}

__device__ __forceinline__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

// grid (tiles of queries, heads); SLOTS = ceil(D / 32): outputs that a lane holds
template <int WARPS, int SLOTS>
__global__ void attention_flash(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                                float* __restrict__ y, int queries, int keys, int D, float scale) {
    extern __shared__ float shared[];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    float* tile_k = shared;                           // [KEYS, D + 1]: lanes read down a column
    float* tile_v = tile_k + KEYS * (D + 1);          // [KEYS, D]
    float* query = tile_v + KEYS * D + warp * D;      // [WARPS, D]
    float* weights = tile_v + (KEYS + WARPS) * D + warp * KEYS;  // [WARPS, KEYS]

    const int row = blockIdx.x * WARPS + warp;
    const bool active = row < queries;  // idle warps still help to load
    const size_t at = ((size_t)blockIdx.y * queries + row) * D;
    k += (size_t)blockIdx.y * keys * D;
    v += (size_t)blockIdx.y * keys * D;
    for (int d = lane; d < D; d += 32) query[d] = active ? q[at + d] * scale : 0.0f;

    float sum[SLOTS] = {};
    float peak = -CUDART_INF_F;
    float total = 0.0f;
    for (int k0 = 0; k0 < keys; k0 += KEYS) {
        __syncthreads();  // the previous tile has been used
        for (int i = threadIdx.x; i < KEYS * D; i += 32 * WARPS) {
            const int key = i / D;
            const int d = i % D;
            const bool inside = k0 + key < keys;
            tile_k[key * (D + 1) + d] = inside ? k[(size_t)(k0 + key) * D + d] : 0.0f;
            tile_v[i] = inside ? v[(size_t)(k0 + key) * D + d] : 0.0f;
        }
        __syncthreads();

        float score = -CUDART_INF_F;
        if (k0 + lane < keys) {
            score = 0.0f;
            for (int d = 0; d < D; ++d) score = fmaf(query[d], tile_k[lane * (D + 1) + d], score);
        }
        const float new_peak = fmaxf(peak, warp_max(score));
        const float weight = expf(score - new_peak);
        const float rescale = expf(peak - new_peak);
        weights[lane] = weight;
        total = total * rescale + warp_sum(weight);
        peak = new_peak;
        __syncwarp();
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            const int d = lane + 32 * s;
            if (d >= D) break;
            float value = sum[s] * rescale;
            for (int key = 0; key < KEYS; ++key) value = fmaf(weights[key], tile_v[key * D + d], value);
            sum[s] = value;
        }
    }

    if (!active) return;
    const float inverse = 1.0f / total;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int d = lane + 32 * s;
        if (d < D) y[at + d] = sum[s] * inverse;
    }
}
