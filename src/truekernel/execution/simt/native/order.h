// Which accesses of other threads happened before the current thread's, by barriers, warp synchronisation, and fences with
// atomics (a happens-before relation after CUDA's memory model, PTX ISA, "Memory Consistency Model").
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
