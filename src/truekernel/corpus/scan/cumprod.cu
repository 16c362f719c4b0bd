// Inclusive prefix product of each row, one block a row. Every thread owns a run of consecutive elements: it multiplies them up,
// the block scans the products in shared memory (up-sweep and down-sweep, Blelloch), and the thread goes over its run again.

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK) cumprod_rows(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float tree[BLOCK];
    const int t = threadIdx.x;
    const int run = (n + BLOCK - 1) / BLOCK;
    const int begin = min(t * run, n);
    const int end = min(begin + run, n);
    const float* __restrict__ in = x + (size_t)blockIdx.x * n;
    float* __restrict__ out = y + (size_t)blockIdx.x * n;

    float product = 1.0f;
    for (int i = begin; i < end; ++i) {
        product *= in[i];
    }
    tree[t] = product;

    int stride = 1;
    for (int nodes = BLOCK / 2; nodes > 0; nodes /= 2) {
        __syncthreads();
        if (t < nodes) {
            const int left = stride * (2 * t + 1) - 1;
            const int right = stride * (2 * t + 2) - 1;
            tree[right] *= tree[left];
        }
        stride *= 2;
    }
    if (t == 0) {
        tree[BLOCK - 1] = 1.0f;
    }
    for (int nodes = 1; nodes < BLOCK; nodes *= 2) {
        stride /= 2;
        __syncthreads();
        if (t < nodes) {
            const int left = stride * (2 * t + 1) - 1;
            const int right = stride * (2 * t + 2) - 1;
            const float above = tree[right];
            tree[right] = above * tree[left];
            tree[left] = above;
        }
    }
    __syncthreads();

    product = tree[t];
    for (int i = begin; i < end; ++i) {
        product *= in[i];
        out[i] = product;
    }
}
