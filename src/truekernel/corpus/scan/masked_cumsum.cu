// Inclusive prefix sum of x * mask along each row in a single pass over memory: tiles form a chain. A block takes the next tile by
// an atomic ticket, so that all earlier tiles are done or running, scans it, waits for the sum that the tile before it publishes,
// and publishes its own.

constexpr int BLOCK = 128;
constexpr int ITEMS = 4;
constexpr int TILE = BLOCK * ITEMS;

__global__ void __launch_bounds__(BLOCK)
masked_cumsum_chain(const float* __restrict__ x, const unsigned char* __restrict__ mask, float* __restrict__ y,
                    unsigned int* ticket, volatile float* prefix, volatile int* ready, int n, int tiles) {
    __shared__ float warp_totals[BLOCK / 32];
    __shared__ unsigned int own_ticket;
    __shared__ float before_tile;

    if (threadIdx.x == 0) {
        own_ticket = atomicAdd(ticket, 1u);
    }
    __syncthreads();
    const unsigned int link = own_ticket;
    const int tile = link % tiles;
    const size_t row = (size_t)(link / tiles) * n;
    const int base = tile * TILE + threadIdx.x * ITEMS;

    float v[ITEMS];
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (base + k < n) {
            sum += x[row + base + k] * (float)mask[row + base + k];
        }
        v[k] = sum;
    }

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    float inclusive = sum;
#pragma unroll
    for (int delta = 1; delta < 32; delta *= 2) {
        const float left = __shfl_up_sync(0xffffffffu, inclusive, delta);
        if (lane >= delta) inclusive += left;
    }
    if (lane == 31) {
        warp_totals[warp] = inclusive;
    }
    __syncthreads();
    float before = 0.0f;
    for (int w = 0; w < warp; ++w) {
        before += warp_totals[w];
    }
    float exclusive = __shfl_up_sync(0xffffffffu, inclusive, 1);
    exclusive = lane == 0 ? before : before + exclusive;

    if (threadIdx.x == BLOCK - 1) {
        float earlier = 0.0f;
        if (tile > 0) {
            while (ready[link - 1] == 0) {
            }
            __threadfence();
            earlier = prefix[link - 1];
        }
        prefix[link] = earlier + before + inclusive;
        __threadfence();
        ready[link] = 1;
        before_tile = earlier;
    }
    __syncthreads();

#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (base + k < n) {
            y[row + base + k] = before_tile + exclusive + v[k];
        }
    }
}
