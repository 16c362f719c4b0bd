// Index of the least value along the middle axis of [batch, rows, cols]. Rows are split among blocks; a thread finds the least value
// of its column and slice, packs it with its row into 64 bits that order like (value, row), and swaps the pack into the column's slot
// unless what is there is less.

typedef unsigned long long Pack;

__device__ __forceinline__ Pack pack(float value, int row) {
    // Adding zero turns -0 into +0.
    const unsigned int bits = __float_as_uint(value + 0.0f);
    const unsigned int ordered = (bits >> 31) ? ~bits : bits | 0x80000000u;
    return ((Pack)ordered << 32) | (unsigned int)row;
}

__device__ __forceinline__ void swap_in_if_less(Pack* slot, Pack candidate) {
    Pack old = atomicAdd(slot, 0ull);
    Pack assumed;
    do {
        assumed = old;
        old = atomicCAS(slot, assumed, candidate < assumed ? candidate : assumed);
    } while (assumed != old);
}

__global__ void fill_slots(Pack* __restrict__ slots, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        slots[i] = ~0ull;
    }
}

__global__ void argmin_slices(const float* __restrict__ x, Pack* slots, int rows, int cols, int slice) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= cols) {
        return;
    }
    const int begin = blockIdx.y * slice;
    const int end = min(begin + slice, rows);
    const float* __restrict__ p = x + ((size_t)blockIdx.z * rows + begin) * cols + col;

    float least = *p;
    int least_row = begin;
    for (int r = begin + 1; r < end; ++r) {
        p += cols;
        if (*p < least) {
            least = *p;
            least_row = r;
        }
    }
    swap_in_if_less(slots + (size_t)blockIdx.z * cols + col, pack(least, least_row));
}

__global__ void unpack_rows(const Pack* __restrict__ slots, long long* __restrict__ index, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        index[i] = (long long)(slots[i] & 0xffffffffull);
    }
}
