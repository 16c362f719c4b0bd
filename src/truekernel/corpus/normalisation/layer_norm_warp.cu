// Layer normalisation, one warp a row, mean first and squared deviations in a second pass over the (by then cached)
// row. Rows whose length is a multiple of four are read as float4; what is left over is read one by one.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

template <typename Tile>
__device__ __forceinline__ float tile_sum(const Tile& tile, float value) {
    for (int offset = tile.size() / 2; offset > 0; offset /= 2) value += tile.shfl_down(value, offset);
    return tile.shfl(value, 0);
}

__device__ __forceinline__ float squared(float value) { return value * value; }

template <int ROWS_PER_BLOCK>
__global__ void layer_norm_warp(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y, int rows, int features,
                                float eps) {
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int lane = warp.thread_rank();
    const int row = blockIdx.x * ROWS_PER_BLOCK + threadIdx.y;
    if (row >= rows) return;  // whole warps leave, and nothing below waits for the block

    const float* in = x + (size_t)row * features;
    float* out = y + (size_t)row * features;
    const int quads = features % 4 == 0 ? features / 4 : 0;
    const float4* in4 = reinterpret_cast<const float4*>(in);

    float sum = 0.0f;
    for (int i = lane; i < quads; i += 32) {
        const float4 v = in4[i];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    for (int i = quads * 4 + lane; i < features; i += 32) sum += in[i];
    const float mean = tile_sum(warp, sum) / features;

    float deviation = 0.0f;
    for (int i = lane; i < quads; i += 32) {
        const float4 v = in4[i];
        deviation += squared(v.x - mean) + squared(v.y - mean) + squared(v.z - mean) + squared(v.w - mean);
    }
    for (int i = quads * 4 + lane; i < features; i += 32) deviation += squared(in[i] - mean);
    const float rstd = 1.0f / sqrtf(tile_sum(warp, deviation) / features + eps);

    const float4* weight4 = reinterpret_cast<const float4*>(weight);
    const float4* bias4 = reinterpret_cast<const float4*>(bias);
    float4* out4 = reinterpret_cast<float4*>(out);
    for (int i = lane; i < quads; i += 32) {
        const float4 v = in4[i];
        const float4 w = weight4[i];
        const float4 b = bias4[i];
        float4 r;
        r.x = fmaf((v.x - mean) * rstd, w.x, b.x);
        r.y = fmaf((v.y - mean) * rstd, w.y, b.y);
        r.z = fmaf((v.z - mean) * rstd, w.z, b.z);
        r.w = fmaf((v.w - mean) * rstd, w.w, b.w);
        out4[i] = r;
    }
    for (int i = quads * 4 + lane; i < features; i += 32) out[i] = fmaf((in[i] - mean) * rstd, weight[i], bias[i]);
}
