// Which accesses of other threads happened before the current thread's, by barriers, warp synchronisation, and fences with
// atomics (a happens-before relation after CUDA's memory model, PTX ISA, "Memory Consistency Model").
//
// An atomic or volatile write hands on what the thread's last __threadfence covered (__threadfence_block: within the block only); an
// atomic or volatile read takes it over. More lenient than the model: the reader needs no fence of its own, and fences of a block's
// threads count for the whole block after the next barrier. Volatile accesses never race with one another or with atomics, so that
// an order of volatile data which a fence is missing for is not seen. Shuffles and votes order nothing; __syncwarp does.
#pragma once
#include "internal.h"

namespace tk {

// Who made an access, and when: the thread's own time, which moves at every synchronisation.
struct Stamp {
  uint32_t start;  // number of the block in order of starting
  uint32_t time;
  uint16_t thread;
  uint16_t phase;  // launches and grid barriers of the execution
};

Stamp stamp_now();
uint32_t block_serial();  // of the current block, different for every block that ever ran
bool happened_before(const Stamp &earlier);
// A strong (atomic or volatile) read of, or write to, a variable that may carry what a fence released.
void acquire_from(const volatile void *address);
void release_to(const volatile void *address);
uint3 block_of_start(uint32_t start);

}  // namespace tk
