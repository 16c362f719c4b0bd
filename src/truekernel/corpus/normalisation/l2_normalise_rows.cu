// Rows scaled to unit length, one block a row. Row length need not be a multiple of four: a row is split into a
// head up to the next 16-byte boundary, a body that is read as float4, and a tail.

__device__ __forceinline__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS) l2_normalise_rows(const float* __restrict__ x, float* __restrict__ y,
                                                             int features, float eps) {
    constexpr int WARPS = THREADS / 32;
    __shared__ float partial[WARPS];
    __shared__ float inverse;

    const size_t start = (size_t)blockIdx.x * features;
    const float* in = x + start;
    float* out = y + start;
    const int head = min((int)((4 - start % 4) % 4), features);
    const int quads = (features - head) / 4;
    const int tail = head + quads * 4;
    const float4* body = reinterpret_cast<const float4*>(in + head);

    float sum = 0.0f;
    if (threadIdx.x < head) sum += in[threadIdx.x] * in[threadIdx.x];
    for (int i = threadIdx.x; i < quads; i += THREADS) {
        const float4 v = body[i];
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    if (threadIdx.x < features - tail) sum += in[tail + threadIdx.x] * in[tail + threadIdx.x];

    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < WARPS ? partial[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) inverse = 1.0f / fmaxf(sqrtf(sum), eps);
    }
    __syncthreads();

    const float scale = inverse;
    float4* target = reinterpret_cast<float4*>(out + head);
    if (threadIdx.x < head) out[threadIdx.x] = in[threadIdx.x] * scale;
    for (int i = threadIdx.x; i < quads; i += THREADS) {
        const float4 v = body[i];
        target[i] = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
    }
    if (threadIdx.x < features - tail) out[tail + threadIdx.x] = in[tail + threadIdx.x] * scale;
}
