// Index of the greatest logit of each row by 64-bit atomics: the upper half of a key orders the values, the lower half is the
// complement of the index, so that of equal values the first has the greatest key. A row is split among several blocks.

__device__ __forceinline__ unsigned long long make_key(float value, unsigned int index) {
    // Adding zero turns -0 into +0.
    const unsigned int bits = __float_as_uint(value + 0.0f);
    const unsigned int ordered = bits ^ ((unsigned int)((int)bits >> 31) | 0x80000000u);
    return ((unsigned long long)ordered << 32) | (0xffffffffu - index);
}

__global__ void argmax_keys(const float* __restrict__ logits, unsigned long long* __restrict__ keys, int vocab) {
    __shared__ unsigned long long block_key;
    if (threadIdx.x == 0) {
        block_key = 0ull;
    }
    __syncthreads();

    const float* __restrict__ row = logits + (size_t)blockIdx.y * vocab;
    unsigned long long best = 0ull;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < vocab; i += gridDim.x * blockDim.x) {
        const unsigned long long key = make_key(row[i], i);
        best = key > best ? key : best;
    }
    atomicMax(&block_key, best);
    __syncthreads();

    if (threadIdx.x == 0) {
        atomicMax(&keys[blockIdx.y], block_key);
    }
}

__global__ void key_to_index(const unsigned long long* __restrict__ keys, long long* __restrict__ token, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        token[row] = 0xffffffffu - (unsigned int)(keys[row] & 0xffffffffull);
    }
}
