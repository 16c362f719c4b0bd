// Causal attention in float16, one thread a query. Query and output stay in registers as float32; tiles of keys and
// values go through shared memory in pairs of halves. Tiles that no query of the block may see are not read.
#include <cuda_fp16.h>
#include <math_constants.h>

// grid (tiles of queries, heads); tensors [heads, length, PAIRS] of pairs
template <int PAIRS, int KEYS, int THREADS>
__global__ void __launch_bounds__(THREADS)
    causal_attention_threads(const __half2* __restrict__ q, const __half2* __restrict__ k,
                             const __half2* __restrict__ v, __half2* __restrict__ y, int length, float scale) {
    __shared__ __half2 tile_k[KEYS][PAIRS];
    __shared__ __half2 tile_v[KEYS][PAIRS];
    const size_t head = (size_t)blockIdx.y * length * PAIRS;
    const int first = blockIdx.x * THREADS;
    const int query = first + threadIdx.x;
    const int end = min(first + THREADS, length);  // keys from here on are later than every query of the block

    float2 own[PAIRS];
    float2 sum[PAIRS];
#pragma unroll
    for (int p = 0; p < PAIRS; ++p) {
        own[p] = make_float2(0.0f, 0.0f);
        sum[p] = make_float2(0.0f, 0.0f);
        if (query < length) own[p] = __half22float2(q[head + (size_t)query * PAIRS + p]);
    }

    float peak = -CUDART_INF_F;
    float total = 0.0f;
    for (int k0 = 0; k0 < end; k0 += KEYS) {
        const int count = min(KEYS, end - k0);
        for (int i = threadIdx.x; i < count * PAIRS; i += THREADS) {
            tile_k[i / PAIRS][i % PAIRS] = k[head + (size_t)k0 * PAIRS + i];
            tile_v[i / PAIRS][i % PAIRS] = v[head + (size_t)k0 * PAIRS + i];
        }
        __syncthreads();
        for (int key = 0; key < count && k0 + key <= query; ++key) {
            float score = 0.0f;
#pragma unroll
            for (int p = 0; p < PAIRS; ++p) {
                const float2 pair = __half22float2(tile_k[key][p]);
                score = fmaf(own[p].x, pair.x, score);
                score = fmaf(own[p].y, pair.y, score);
            }
            score *= scale;
            if (score > peak) {
                const float rescale = expf(peak - score);
                peak = score;
                total *= rescale;
#pragma unroll
                for (int p = 0; p < PAIRS; ++p) {
                    sum[p].x *= rescale;
                    sum[p].y *= rescale;
                }
            }
            const float weight = expf(score - peak);
            total += weight;
#pragma unroll
            for (int p = 0; p < PAIRS; ++p) {
                const float2 pair = __half22float2(tile_v[key][p]);
                sum[p].x = fmaf(weight, pair.x, sum[p].x);
                sum[p].y = fmaf(weight, pair.y, sum[p].y);
            }
        }
        __syncthreads();
    }

    if (query >= length) return;
#pragma unroll
    for (int p = 0; p < PAIRS; ++p) {
        y[head + (size_t)query * PAIRS + p] = __floats2half2_rn(sum[p].x / total, sum[p].y / total);
    }
}
