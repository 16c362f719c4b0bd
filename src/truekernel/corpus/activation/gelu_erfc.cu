// GELU through the complementary error function: no cancellation in the left tail. Each thread takes ITEMS elements that lie
// one block apart, all loaded before the first is used, to keep several loads in flight.

template <int ITEMS>
__global__ void gelu_erfc(const float* __restrict__ x, float* __restrict__ y, unsigned int n) {
    const unsigned int base = blockIdx.x * blockDim.x * ITEMS + threadIdx.x;
    float v[ITEMS];

#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        const unsigned int i = base + k * blockDim.x;
        v[k] = i < n ? __ldg(&x[i]) : 0.0f;
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        v[k] *= 0.5f * erfcf(-v[k] * 0.70710678118654752f);
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        const unsigned int i = base + k * blockDim.x;
        if (i < n) {
            y[i] = v[k];
        }
    }
}
