// y = clamp(x * scale[channel] + bias[channel], 0, 6) over a contiguous [batch, channel, plane] tensor.
// Four elements a thread and step; a vector may straddle two planes, so each element finds its own channel.

__device__ __forceinline__ float relu6(float v) {
    // Comparisons, not fminf/fmaxf: a NaN must come through.
    v = v < 0.0f ? 0.0f : v;
    return v > 6.0f ? 6.0f : v;
}

__device__ __forceinline__ float transform(float v, long long i, const float* __restrict__ scale,
                                           const float* __restrict__ bias, int channels, int plane) {
    const int c = (int)((i / plane) % channels);
    return relu6(v * __ldg(scale + c) + __ldg(bias + c));
}

__global__ void __launch_bounds__(256)
scale_bias_clamp(const float* __restrict__ x, const float* __restrict__ scale, const float* __restrict__ bias,
                 float* __restrict__ y, int channels, int plane, long long total) {
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long step = (long long)gridDim.x * blockDim.x;
    const long long vectors = total / 4;

    const float4* x4 = reinterpret_cast<const float4*>(x);
    float4* y4 = reinterpret_cast<float4*>(y);
    for (long long v = first; v < vectors; v += step) {
        const float4 in = x4[v];
        const long long i = v * 4;
        float4 out;
        out.x = transform(in.x, i + 0, scale, bias, channels, plane);
        out.y = transform(in.y, i + 1, scale, bias, channels, plane);
        out.z = transform(in.z, i + 2, scale, bias, channels, plane);
        out.w = transform(in.w, i + 3, scale, bias, channels, plane);
        y4[v] = out;
    }

    const long long tail = vectors * 4 + first;
    if (tail < total) {
        y[tail] = transform(x[tail], tail, scale, bias, channels, plane);
    }
}
