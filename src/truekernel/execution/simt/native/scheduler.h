// Between the loop over blocks (launch.cpp) and the threads within a block (scheduler.cpp).
#pragma once
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

}  // namespace tk

extern "C" {
extern uint3 tk_thread_index, tk_block_index, tk_block_dim, tk_grid_dim;
}
