// Mean of the smooth L1 loss. Cooperative groups reduce over tiles of 32 threads; the block that finishes last adds the blocks'
// sums in a fixed order, so that the result does not depend on which block that is.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

constexpr int BLOCK = 128;

__device__ __forceinline__ float smooth_l1(float d, float beta) {
    const float a = fabsf(d);
    return a < beta ? 0.5f * a * a / beta : a - 0.5f * beta;
}

__device__ float block_sum(cg::thread_block block, float v, float* tile_sums) {
    const cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
    for (int offset = tile.size() / 2; offset > 0; offset /= 2) {
        v += tile.shfl_down(v, offset);
    }
    if (tile.thread_rank() == 0) {
        tile_sums[tile.meta_group_rank()] = v;
    }
    block.sync();
    float sum = 0.0f;
    if (block.thread_rank() == 0) {
        for (unsigned int i = 0; i < tile.meta_group_size(); ++i) {
            sum += tile_sums[i];
        }
    }
    return sum;
}

__global__ void __launch_bounds__(BLOCK)
smooth_l1_mean(const float* __restrict__ predictions, const float* __restrict__ targets, float* partial, unsigned int* done,
               float* __restrict__ loss, float beta, long long n) {
    __shared__ float tile_sums[BLOCK / 32];
    __shared__ unsigned int rank;
    const cg::thread_block block = cg::this_thread_block();

    const long long step = (long long)gridDim.x * blockDim.x;
    float sum = 0.0f;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        sum += smooth_l1(predictions[i] - targets[i], beta);
    }
    sum = block_sum(block, sum, tile_sums);

    if (block.thread_rank() == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        rank = atomicInc(done, gridDim.x - 1);
    }
    block.sync();
    if (rank == gridDim.x - 1) {
        __threadfence();
        float total = 0.0f;
        for (int i = threadIdx.x; i < gridDim.x; i += BLOCK) {
            total += *(volatile float*)(partial + i);
        }
        total = block_sum(block, total, tile_sums);
        if (block.thread_rank() == 0) {
            *loss = total / (float)n;
        }
    }
}
