// z = alpha * x + beta * y in half precision, eight halves (16 bytes) a thread and step, arithmetic in float.
#include <cuda_fp16.h>

__device__ __forceinline__ __half2 axpby2(__half2 x, __half2 y, float alpha, float beta) {
    const float2 a = __half22float2(x);
    const float2 b = __half22float2(y);
    return __floats2half2_rn(fmaf(alpha, a.x, beta * b.x), fmaf(alpha, a.y, beta * b.y));
}

__global__ void axpby_half(const __half* __restrict__ x, const __half* __restrict__ y, __half* __restrict__ z,
                           float alpha, float beta, int n) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    const int step = gridDim.x * blockDim.x;
    const int packs = n >> 3;

    for (int p = first; p < packs; p += step) {
        const uint4 xs = reinterpret_cast<const uint4*>(x)[p];
        const uint4 ys = reinterpret_cast<const uint4*>(y)[p];
        uint4 zs;
        const __half2* a = reinterpret_cast<const __half2*>(&xs);
        const __half2* b = reinterpret_cast<const __half2*>(&ys);
        __half2* c = reinterpret_cast<__half2*>(&zs);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            c[k] = axpby2(a[k], b[k], alpha, beta);
        }
        reinterpret_cast<uint4*>(z)[p] = zs;
    }

    for (int i = (packs << 3) + first; i < n; i += step) {
        z[i] = __float2half(fmaf(alpha, __half2float(x[i]), beta * __half2float(y[i])));
    }
}
