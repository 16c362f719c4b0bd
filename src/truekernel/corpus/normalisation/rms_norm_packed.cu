// RMS normalisation of bfloat16 rows, one block a row. Values are read in pairs, squared and summed in float32, and
// rounded once. Rows of odd length start at odd addresses, so they are read one by one.
#include <cuda_bf16.h>

template <int WARPS>
__device__ __forceinline__ float block_sum(float value, float* scratch) {
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
    if (lane == 0) scratch[warp] = value;
    __syncthreads();
    float total = 0.0f;
    for (int i = 0; i < WARPS; ++i) total += scratch[i];
    return total;
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS) rms_norm_packed(const __nv_bfloat16* __restrict__ x,
                                                           const __nv_bfloat16* __restrict__ weight,
                                                           __nv_bfloat16* __restrict__ y, int hidden, float eps) {
    __shared__ float scratch[THREADS / 32];
    const size_t start = (size_t)blockIdx.x * hidden;
    const int pairs = hidden % 2 == 0 ? hidden / 2 : 0;
    const __nv_bfloat162* x2 = reinterpret_cast<const __nv_bfloat162*>(x + start);
    const __nv_bfloat162* weight2 = reinterpret_cast<const __nv_bfloat162*>(weight);
    __nv_bfloat162* y2 = reinterpret_cast<__nv_bfloat162*>(y + start);

    float squares = 0.0f;
    for (int i = threadIdx.x; i < pairs; i += THREADS) {
        const float2 v = __bfloat1622float2(x2[i]);
        squares += v.x * v.x + v.y * v.y;
    }
    for (int i = 2 * pairs + threadIdx.x; i < hidden; i += THREADS) {
        const float v = __bfloat162float(x[start + i]);
        squares += v * v;
    }
    const float scale = rsqrtf(block_sum<THREADS / 32>(squares, scratch) / hidden + eps);

    for (int i = threadIdx.x; i < pairs; i += THREADS) {
        const float2 v = __bfloat1622float2(x2[i]);
        const float2 w = __bfloat1622float2(weight2[i]);
        y2[i] = __floats2bfloat162_rn(v.x * scale * w.x, v.y * scale * w.y);
    }
    for (int i = 2 * pairs + threadIdx.x; i < hidden; i += THREADS) {
        y[start + i] = __float2bfloat16(__bfloat162float(x[start + i]) * scale * __bfloat162float(weight[i]));
    }
}
