// Mean of squared differences in two kernels: partial sums of a grid-stride loop over vectors of four, then one block for the rest.

__device__ __forceinline__ float warp_sum(float v) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2) {
        v += __shfl_down_sync(0xffffffffu, v, offset);
    }
    return v;
}

template <int BLOCK>
__device__ __forceinline__ float block_sum(float v) {
    __shared__ float warps[BLOCK / 32];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    v = warp_sum(v);
    if (lane == 0) {
        warps[warp] = v;
    }
    __syncthreads();
    if (warp == 0) {
        v = warp_sum(lane < BLOCK / 32 ? warps[lane] : 0.0f);
    }
    return v;
}

__device__ __forceinline__ float squared_difference(float a, float b) {
    const float d = a - b;
    return d * d;
}

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
squared_differences(const float* __restrict__ predictions, const float* __restrict__ targets, float* __restrict__ partial, long long n) {
    const long long vectors = n / 4;
    const long long first = (long long)blockIdx.x * BLOCK + threadIdx.x;
    const long long step = (long long)gridDim.x * BLOCK;
    const float4* __restrict__ p4 = reinterpret_cast<const float4*>(predictions);
    const float4* __restrict__ t4 = reinterpret_cast<const float4*>(targets);

    float sum = 0.0f;
    for (long long i = first; i < vectors; i += step) {
        const float4 p = p4[i];
        const float4 t = t4[i];
        sum += squared_difference(p.x, t.x);
        sum += squared_difference(p.y, t.y);
        sum += squared_difference(p.z, t.z);
        sum += squared_difference(p.w, t.w);
    }
    if (first < n - vectors * 4) {
        const long long i = vectors * 4 + first;
        sum += squared_difference(predictions[i], targets[i]);
    }

    sum = block_sum<BLOCK>(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
    }
}

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
mean_of_partials(const float* __restrict__ partial, float* __restrict__ loss, int count, long long n) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += BLOCK) {
        sum += partial[i];
    }
    sum = block_sum<BLOCK>(sum);
    if (threadIdx.x == 0) {
        *loss = sum / n;
    }
}
