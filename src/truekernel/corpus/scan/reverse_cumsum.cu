// Inclusive suffix sum of each row, one warp-sized group a row, from the right end to the left; four rows a block.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void reverse_cumsum_rows(const float* __restrict__ x, float* __restrict__ y, int rows, int n) {
    const cg::thread_block block = cg::this_thread_block();
    const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    const int row = blockIdx.x * (blockDim.x / 32) + warp.meta_group_rank();
    if (row >= rows) {
        return;
    }

    const float* __restrict__ in = x + (size_t)row * n;
    float* __restrict__ out = y + (size_t)row * n;
    const int lane = warp.thread_rank();

    float carry = 0.0f;
    for (int end = n; end > 0; end -= 32) {
        // The last lane holds the element next to the part that is done; on the left the tile may hang over the row's start.
        const int i = end - 32 + lane;
        float v = i >= 0 ? in[i] : 0.0f;
#pragma unroll
        for (int delta = 1; delta < 32; delta *= 2) {
            const float right = warp.shfl_down(v, delta);
            if (lane + delta < 32) {
                v += right;
            }
        }
        v += carry;
        if (i >= 0) {
            out[i] = v;
        }
        carry = warp.shfl(v, 0);
    }
}
