// Rotary embedding of bfloat16 heads, one block a token. Where the number of pairs is even, two neighbouring pairs
// are loaded, rotated in float32 and stored together.
#include <cuda_bf16.h>

__device__ __forceinline__ float2 rotate(float first, float second, float cosine, float sine) {
    return make_float2(first * cosine - second * sine, second * cosine + first * sine);
}

// x, y [tokens, heads, 2 * pairs]; cosine, sine [tokens, pairs]
__global__ void rotary_packed(const __nv_bfloat16* __restrict__ x, const float* __restrict__ cosine,
                              const float* __restrict__ sine, __nv_bfloat16* __restrict__ y, int heads, int pairs) {
    const size_t token = blockIdx.x;
    const float* cosine_row = cosine + token * pairs;
    const float* sine_row = sine + token * pairs;
    const size_t start = token * heads * 2 * pairs;

    if (pairs % 2 == 0) {
        const int steps = heads * pairs / 2;
        for (int step = threadIdx.x; step < steps; step += blockDim.x) {
            const int head = step / (pairs / 2);
            const int i = step % (pairs / 2) * 2;
            const size_t at = start + (size_t)head * 2 * pairs + i;
            const float2 first = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(x + at));
            const float2 second = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(x + at + pairs));
            const float2 c = *reinterpret_cast<const float2*>(cosine_row + i);
            const float2 s = *reinterpret_cast<const float2*>(sine_row + i);
            const float2 even = rotate(first.x, second.x, c.x, s.x);
            const float2 odd = rotate(first.y, second.y, c.y, s.y);
            *reinterpret_cast<__nv_bfloat162*>(y + at) = __floats2bfloat162_rn(even.x, odd.x);
            *reinterpret_cast<__nv_bfloat162*>(y + at + pairs) = __floats2bfloat162_rn(even.y, odd.y);
        }
        return;
    }
    for (int step = threadIdx.x; step < heads * pairs; step += blockDim.x) {
        const int i = step % pairs;
        const size_t at = start + (size_t)(step / pairs) * 2 * pairs + i;
        const float2 turned =
            rotate(__bfloat162float(x[at]), __bfloat162float(x[at + pairs]), cosine_row[i], sine_row[i]);
        y[at] = __float2bfloat16(turned.x);
        y[at + pairs] = __float2bfloat16(turned.y);
    }
}
