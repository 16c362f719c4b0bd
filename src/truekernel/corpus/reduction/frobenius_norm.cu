// y = x / sqrt(sum x^2). First kernel: every block sums squares over a grid-stride range; the block that finishes last, known by
// an atomic counter, adds the partial sums up. Second kernel: scale. Squares are summed in double, where neither the square of a
// small number nor that of a large one is lost.

constexpr int BLOCK = 256;

__device__ __forceinline__ double warp_sum(double v) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) {
        v += __shfl_down_sync(0xffffffffu, v, offset);
    }
    return v;
}

// The sum of all threads' values; valid in thread 0.
__device__ double block_sum(double v) {
    __shared__ double warp_sums[BLOCK / 32];
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    v = warp_sum(v);
    if (lane == 0) {
        warp_sums[warp] = v;
    }
    __syncthreads();
    v = lane < BLOCK / 32 ? warp_sums[lane] : 0.0;
    __syncthreads();
    return warp == 0 ? warp_sum(v) : 0.0;
}

__global__ void __launch_bounds__(BLOCK)
norm_of_all(const float* __restrict__ x, double* partial, unsigned int* counter, double* __restrict__ inverse,
            long long n) {
    __shared__ bool is_last;

    const long long start = (long long)blockIdx.x * BLOCK + threadIdx.x;
    const long long stride = (long long)gridDim.x * BLOCK;
    double sum = 0.0;
    for (long long i = start; i < n / 4; i += stride) {
        const float4 v = reinterpret_cast<const float4*>(x)[i];
        sum += (double)v.x * v.x + (double)v.y * v.y;
        sum += (double)v.z * v.z + (double)v.w * v.w;
    }
    for (long long i = n / 4 * 4 + start; i < n; i += stride) {
        sum += (double)x[i] * x[i];
    }

    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        is_last = atomicAdd(counter, 1u) == gridDim.x - 1;
    }
    __syncthreads();

    if (is_last) {
        __threadfence();
        double total = 0.0;
        for (unsigned int i = threadIdx.x; i < gridDim.x; i += BLOCK) {
            total += partial[i];
        }
        total = block_sum(total);
        if (threadIdx.x == 0) {
            *inverse = 1.0 / sqrt(total);
        }
    }
}

__global__ void __launch_bounds__(BLOCK)
scale_by(const float* __restrict__ x, const double* __restrict__ inverse, float* __restrict__ y, long long n) {
    const double factor = *inverse;
    const long long i = ((long long)blockIdx.x * BLOCK + threadIdx.x) * 4;
    if (i + 3 < n) {
        const float4 v = *reinterpret_cast<const float4*>(x + i);
        *reinterpret_cast<float4*>(y + i) =
            make_float4((float)(v.x * factor), (float)(v.y * factor), (float)(v.z * factor), (float)(v.w * factor));
    } else {
        for (long long k = i; k < n; ++k) {
            y[k] = (float)(x[k] * factor);
        }
    }
}
