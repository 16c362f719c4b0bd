// Unbiased variance of each row in one pass, one warp a row: every lane keeps a running count, mean and sum of squared deviations
// (Welford), and the lanes merge in pairs (Chan, Golub, LeVeque). Deviations are taken from the row's first element, so that a large
// common offset costs no digits.

struct Moments {
    float count;
    float mean;
    float m2;
};

__device__ __forceinline__ void push(Moments& m, float v) {
    m.count += 1.0f;
    const float delta = v - m.mean;
    m.mean += delta / m.count;
    m.m2 += delta * (v - m.mean);
}

__device__ __forceinline__ Moments merge(const Moments& a, const Moments& b) {
    Moments r;
    r.count = a.count + b.count;
    if (r.count == 0.0f) {
        return a;
    }
    const float delta = b.mean - a.mean;
    const float share = b.count / r.count;
    r.mean = a.mean + delta * share;
    r.m2 = a.m2 + b.m2 + delta * delta * a.count * share;
    return r;
}

__global__ void row_variance_welford(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const int lane = threadIdx.x;
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) {
        return;
    }

    const float* __restrict__ values = x + (size_t)row * cols;
    const float shift = values[0];
    Moments m = {0.0f, 0.0f, 0.0f};
    for (int i = lane; i < cols; i += 32) {
        push(m, values[i] - shift);
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) {
        Moments other;
        other.count = __shfl_xor_sync(0xffffffffu, m.count, offset);
        other.mean = __shfl_xor_sync(0xffffffffu, m.mean, offset);
        other.m2 = __shfl_xor_sync(0xffffffffu, m.m2, offset);
        m = merge(m, other);
    }
    if (lane == 0) {
        y[row] = m.m2 / (m.count - 1.0f);
    }
}
