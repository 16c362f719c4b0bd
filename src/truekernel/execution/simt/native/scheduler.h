// Between the loop over blocks (launch.cpp) and the threads within a block (scheduler.cpp).
#pragma once
#include <immintrin.h>

#include "internal.h"

namespace tk {

// Why control came back from a block.
enum Reason { kFinished, kStalled, kWaitsForGrid };

extern uint3 thread_indices[kMaxThreads];
extern uint64_t random_state;

void start_block(Block *, unsigned threads);
Reason run_block(Block *);
void release_grid_barrier(Block *);
void forget_fibers();
void after_collective();
bool on_own_stack(uint64_t stack_pointer);
uint32_t next_random();
void reset_arithmetic();

// A thread may have changed how floating-point numbers round, or which exceptions trap: no other thread's concern.
inline void reset_rounding() {
  constexpr unsigned kUsual = 0x1F80, kFlags = 0x3F;  // round to nearest, subnormals kept, all exceptions masked; sticky flags
  if (__builtin_expect((_mm_getcsr() & ~kFlags) != kUsual, 0)) _mm_setcsr(kUsual);
}

}  // namespace tk

extern "C" {
extern uint3 tk_thread_index, tk_block_index, tk_block_dim, tk_grid_dim;
}
