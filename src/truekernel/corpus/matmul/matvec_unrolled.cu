// Matrix times vector, one block a row. Four independent sums a thread hide the latency of the loads; rows whose
// length is a multiple of four are read as float4.

template <int THREADS>
__global__ void __launch_bounds__(THREADS) matvec_unrolled(const float* __restrict__ a, const float* __restrict__ x,
                                                           float* __restrict__ y, int K) {
    __shared__ float partial[THREADS / 32];
    const float* row = a + (size_t)blockIdx.x * K;
    const int quads = K % 4 == 0 ? K / 4 : 0;
    const float4* row4 = reinterpret_cast<const float4*>(row);
    const float4* x4 = reinterpret_cast<const float4*>(x);

    float4 sums = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
    for (int i = threadIdx.x; i < quads; i += THREADS) {
        const float4 u = __ldg(&row4[i]);
        const float4 v = __ldg(&x4[i]);
        sums.x = fmaf(u.x, v.x, sums.x);
        sums.y = fmaf(u.y, v.y, sums.y);
        sums.z = fmaf(u.z, v.z, sums.z);
        sums.w = fmaf(u.w, v.w, sums.w);
    }
    float sum = (sums.x + sums.y) + (sums.z + sums.w);
    for (int i = 4 * quads + threadIdx.x; i < K; i += THREADS) sum = fmaf(row[i], x[i], sum);

    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int w = 0; w < THREADS / 32; ++w) total += partial[w];
        y[blockIdx.x] = total;
    }
}
