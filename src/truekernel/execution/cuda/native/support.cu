// What the worker itself runs on the device: fill memory, check red zones, hash buffers, prove that the device computes.
// One table entry describes bytes on the device; tables hold addresses that the worker chose.

struct Range {
  unsigned long long address, bytes;
  unsigned int value, number;
};

typedef unsigned long long u64;

// Every byte of each range becomes its value. Grid: x blocks share a range, y is its number.
extern "C" __global__ void tk_fill(const Range *ranges) {
  const Range range = ranges[blockIdx.y];
  const u64 from = range.address, to = from + range.bytes;
  const u64 first = (from + 15) & ~15ull, last = to & ~15ull;
  const unsigned char byte = range.value;
  const u64 thread = blockIdx.x * u64(blockDim.x) + threadIdx.x, step = u64(gridDim.x) * blockDim.x;
  if (first >= last) {
    for (u64 at = from + thread; at < to; at += step) *(unsigned char *)at = byte;
    return;
  }
  const unsigned int word = byte * 0x01010101u;
  for (u64 at = first + 16 * thread; at < last; at += 16 * step) *(uint4 *)at = make_uint4(word, word, word, word);
  for (u64 at = from + thread; at < first; at += step) *(unsigned char *)at = byte;
  for (u64 at = last + thread; at < to; at += step) *(unsigned char *)at = byte;
}

// Position of the first byte of each range that is not its value, all ones when there is none. One block a range.
extern "C" __global__ void tk_check(const Range *ranges, u64 *first_wrong) {
  const Range range = ranges[blockIdx.x];
  u64 found = ~0ull;
  for (u64 k = threadIdx.x; k < range.bytes; k += blockDim.x)
    if (*(const volatile unsigned char *)(range.address + k) != (unsigned char)range.value) {
      found = k;
      break;
    }
  __shared__ u64 lowest;
  if (threadIdx.x == 0) lowest = ~0ull;
  __syncthreads();
  if (found != ~0ull) atomicMin(&lowest, found);
  __syncthreads();
  if (threadIdx.x == 0) first_wrong[blockIdx.x] = lowest;
}

// The word of 16 bytes in truekernel/numerics/digest.py.
__device__ u64 mixed(u64 index, u64 low, u64 high) {
  u64 h = low ^ (index * 0x9E3779B97F4A7C15ull + 0xD1B54A32D192ED03ull);
  h = (h ^ (h >> 32)) * 0xFF51AFD7ED558CCDull;
  h = ((h ^ (h >> 29)) + high) * 0xC4CEB9FE1A85EC53ull;
  h = (h ^ (h >> 32)) * 0xFF51AFD7ED558CCDull;
  return h ^ (h >> 29);
}

// Adds the words of each range to sums[number]; a range's `number` is that of the output it holds. Ranges start aligned to 16 bytes.
extern "C" __global__ void tk_hash(const Range *ranges, u64 *sums) {
  const Range range = ranges[blockIdx.y];
  const u64 pairs = range.bytes / 16, index = u64(range.number) << 40;
  const ulonglong2 *words = (const ulonglong2 *)range.address;
  const u64 thread = blockIdx.x * u64(blockDim.x) + threadIdx.x, step = u64(gridDim.x) * blockDim.x;
  u64 sum = 0;
  for (u64 k = thread; k < pairs; k += step) {
    const ulonglong2 pair = words[k];
    sum += mixed(index + k, pair.x, pair.y);
  }
  if (thread == 0 && range.bytes % 16) {
    u64 rest[2] = {0, 0};
    const unsigned char *tail = (const unsigned char *)(range.address + 16 * pairs);
    for (u64 k = 0; k < range.bytes % 16; ++k) rest[k / 8] |= u64(tail[k]) << (8 * (k % 8));
    sum += mixed(index + pairs, rest[0], rest[1]);
  }
  for (int lane = 16; lane; lane /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lane);
  __shared__ u64 warps[32];
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned k = 1; k < blockDim.x / 32; ++k) sum += warps[k];
    atomicAdd(&sums[blockIdx.y], sum);
  }
}

// out[i] depends on integer, float and shared-memory arithmetic of its block; the worker knows what comes out.
extern "C" __global__ void tk_probe(unsigned int *out) {
  __shared__ unsigned int shared[256];
  shared[threadIdx.x] = (blockIdx.x * 256 + threadIdx.x) * 2654435761u;
  __syncthreads();
  const unsigned int other = shared[255 - threadIdx.x];
  out[blockIdx.x * 256 + threadIdx.x] = other ^ __float_as_uint(fmaf(float(threadIdx.x), 0.5f, float(blockIdx.x)));
}
