// Inclusive prefix sum of each row, one block a row. The block walks along the row in tiles of BLOCK * ITEMS elements: a serial
// scan in registers, a shuffle scan over the warp, a shuffle scan over the warps' totals, and a carry from tile to tile.

constexpr int BLOCK = 128;
constexpr int ITEMS = 4;
constexpr int WARPS = BLOCK / 32;

__device__ __forceinline__ float warp_inclusive(float v, int lane) {
#pragma unroll
    for (int delta = 1; delta < 32; delta <<= 1) {
        const float left = __shfl_up_sync(0xffffffffu, v, delta);
        if (lane >= delta) {
            v += left;
        }
    }
    return v;
}

__global__ void __launch_bounds__(BLOCK) cumsum_rows(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float totals[WARPS];
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const float* __restrict__ in = x + (size_t)blockIdx.x * n;
    float* __restrict__ out = y + (size_t)blockIdx.x * n;

    float carry = 0.0f;
    for (int tile = 0; tile < n; tile += BLOCK * ITEMS) {
        const int base = tile + threadIdx.x * ITEMS;
        float v[ITEMS];
        if (n % 4 == 0 && base + ITEMS <= n) {
            const float4 q = *reinterpret_cast<const float4*>(in + base);
            v[0] = q.x;
            v[1] = q.y;
            v[2] = q.z;
            v[3] = q.w;
        } else {
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) {
                v[k] = base + k < n ? in[base + k] : 0.0f;
            }
        }
#pragma unroll
        for (int k = 1; k < ITEMS; ++k) {
            v[k] += v[k - 1];
        }

        const float inclusive = warp_inclusive(v[ITEMS - 1], lane);
        float before = __shfl_up_sync(0xffffffffu, inclusive, 1);
        if (lane == 0) {
            before = 0.0f;
        }
        if (lane == 31) {
            totals[warp] = inclusive;
        }
        __syncthreads();

        float tile_total = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            if (w < warp) {
                before += totals[w];
            }
            tile_total += totals[w];
        }
        __syncthreads();

#pragma unroll
        for (int k = 0; k < ITEMS; ++k) {
            if (base + k < n) {
                out[base + k] = carry + before + v[k];
            }
        }
        carry += tile_total;
    }
}
