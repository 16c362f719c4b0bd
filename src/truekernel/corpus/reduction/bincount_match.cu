// How often each label occurs, without shared memory: the lanes of a warp that hold the same label find each other, and the first of
// them adds their number.

__global__ void __launch_bounds__(128) bincount_match(const long long* __restrict__ labels, int* __restrict__ counts, int n) {
    const int lane = threadIdx.x & 31;
    const int step = gridDim.x * blockDim.x;

    // The whole warp goes round together: `first` is the index of its lane 0.
    for (int first = blockIdx.x * blockDim.x + threadIdx.x - lane; first < n; first += step) {
        const int i = first + lane;
        const unsigned int active = __ballot_sync(0xffffffffu, i < n);
        if (i < n) {
            const int label = (int)labels[i];
            const unsigned int peers = __match_any_sync(active, label);
            if (lane == __ffs(peers) - 1) {
                atomicAdd(counts + label, __popc(peers));
            }
        }
    }
}
