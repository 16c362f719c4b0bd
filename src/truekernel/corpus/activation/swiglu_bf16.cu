// y[t, d] = silu(x[t, d]) * x[t, D + d] in bfloat16, arithmetic in float. One block a token. Pairs are loaded together where
// both halves of a row start at an even element, that is, where D is even.
#include <cuda_bf16.h>

__device__ __forceinline__ float swiglu(float gate, float value) {
    return gate / (1.0f + expf(-gate)) * value;
}

__global__ void __launch_bounds__(256)
swiglu_bf16(const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y, int d_len) {
    const __nv_bfloat16* gate = x + (size_t)blockIdx.x * 2 * d_len;
    const __nv_bfloat16* value = gate + d_len;
    __nv_bfloat16* out = y + (size_t)blockIdx.x * d_len;

    if (d_len % 2 == 0) {
        const __nv_bfloat162* gate2 = reinterpret_cast<const __nv_bfloat162*>(gate);
        const __nv_bfloat162* value2 = reinterpret_cast<const __nv_bfloat162*>(value);
        __nv_bfloat162* out2 = reinterpret_cast<__nv_bfloat162*>(out);
        for (int i = threadIdx.x; i < d_len / 2; i += blockDim.x) {
            const float2 g = __bfloat1622float2(gate2[i]);
            const float2 v = __bfloat1622float2(value2[i]);
            out2[i] = __floats2bfloat162_rn(swiglu(g.x, v.x), swiglu(g.y, v.y));
        }
    } else {
        for (int i = threadIdx.x; i < d_len; i += blockDim.x) {
            out[i] = __float2bfloat16(swiglu(__bfloat162float(gate[i]), __bfloat162float(value[i])));
        }
    }
}
