// Which device thread runs next, block barriers, and the threads' stacks.
#include "scheduler.h"

#include <string.h>
#include <sys/mman.h>

#include "internal.h"
#include "switch.h"

extern "C" {
uint3 tk_thread_index, tk_block_index;
uint3 tk_block_dim, tk_grid_dim;
}

namespace tk {

Block *block;
unsigned current;
const tk_launch_spec *launch;
uint32_t launch_number;
tk_launch_counts counts;
unsigned threads_per_block;
bool in_launch;
volatile int no_preemption;
Reason left_because;
uint3 thread_indices[kMaxThreads];
uint64_t random_state;

// Stacks need no guard pages between them: a recursion that leaves its own stack is noticed at the next switch or timer tick, and the
// first thread to run, the one that usually recurses, has the lowest stack, right above inaccessible memory.
static const size_t kStack = 256 * 1024;
static char *stacks;
static Fiber fibers[kMaxFibers];
static Fiber *free_fibers;
static unsigned fibers_made;
static void *main_stack;

bool schedule_is_gpu() { return launch->schedule == TK_GPU; }

uint32_t next_random() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return uint32_t(random_state >> 16);
}

void initialise_fibers() {
  const size_t bytes = kStack * kMaxFibers;
  char *all = static_cast<char *>(
      mmap(nullptr, bytes + 2 * kFar, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  stacks = all + kFar;
  mprotect(stacks, bytes, PROT_READ | PROT_WRITE);
}

bool stack_contains(uint64_t address) {
  const auto low = reinterpret_cast<uint64_t>(stacks);
  return address >= low - (1 << 20) && address < low + kStack * kMaxFibers;
}

bool on_own_stack(uint64_t stack_pointer) {
  const Fiber *fiber = block->thread[current].fiber;
  return fiber && stack_pointer > reinterpret_cast<uint64_t>(fiber->low) + 512 &&
         stack_pointer <= reinterpret_cast<uint64_t>(fiber->high);
}

static void thread_main();

static Fiber *take_fiber() {
  Fiber *fiber = free_fibers;
  if (fiber) {
    free_fibers = fiber->next_free;
    return fiber;
  }
  if (fibers_made == kMaxFibers) fail(TK_INFRASTRUCTURE, {}, "too many suspended threads");
  fiber = &fibers[fibers_made];
  fiber->low = stacks + fibers_made * kStack;
  // Tops at different offsets within a page: stacks that alias in the first-level cache would evict one another at every switch.
  // Within its upper half, so that a small frame touches one page only: a new child pays for every page.
  fiber->high = fiber->low + kStack - fibers_made * 320 % 2048;
  fiber->stack_pointer = fresh_stack(fiber->high, thread_main);
  ++fibers_made;
  return fiber;
}

static inline void release_fiber(Fiber *fiber) {
  fiber->next_free = free_fibers;
  free_fibers = fiber;
}

static inline void set_current(unsigned thread) {
  current = thread;
  block->cursor = block->place[thread] + 1;
  tk_thread_index = thread_indices[thread];
}

static inline void clear_ready(unsigned thread) {
  const unsigned position = block->place[thread];
  block->ready[position >> 6] &= ~(1ull << (position & 63));
}

void make_ready(unsigned thread) {
  const unsigned position = block->place[thread];
  block->state[thread] = kReady;
  block->ready[position >> 6] |= 1ull << (position & 63);
}

static inline int next_in_order() {
  const unsigned words = (block->threads + 63) >> 6;
  unsigned word = block->cursor >> 6;
  if (word < words) {
    uint64_t ready = block->ready[word] & (~0ull << (block->cursor & 63));
    for (;;) {
      if (ready) return block->order[word * 64 + __builtin_ctzll(ready)];
      if (++word >= words) break;
      ready = block->ready[word];
    }
  }
  for (word = 0; word < words; ++word)
    if (block->ready[word]) return block->order[word * 64 + __builtin_ctzll(block->ready[word])];
  return -1;
}

static inline int next_thread() {
  if (launch->schedule == TK_WARP_GREEDY) {  // order is the identity here
    const unsigned warp = current >> 5;
    const auto ready = uint32_t(block->ready[warp >> 1] >> (32 * (warp & 1)));
    if (ready) return int(warp * 32 + __builtin_ctz(ready));
  }
  return next_in_order();
}

static inline int next_or_converged() {
  const int next = next_thread();
  return next < 0 && block->converging && release_converging() ? next_thread() : next;
}

[[noreturn]] static void deadlock() {
  unsigned at_barrier = 0, at_warp = 0, exited = 0, victim = 0;
  int barrier_line = 0, warp_line = 0;
  for (unsigned t = 0; t < block->threads; ++t) {
    const State state = State(block->state[t]);
    if (state == kDone) ++exited;
    if (state == kAtBarrier && !at_barrier++) barrier_line = block->thread[t].line;
    if (state == kAtWarp && !at_warp++) {
      warp_line = block->thread[t].line;
      victim = t;
    }
    if (state != kDone && !at_warp) victim = t;
  }
  set_current(victim);
  Place place;
  place.line = warp_line ? warp_line : barrier_line ? barrier_line : block->thread[victim].line;
  if (at_warp)
    fail(TK_DEADLOCK, place, "%u threads wait in a warp collective at line %d, %u at a barrier at line %d, %u have exited",
         at_warp, warp_line, at_barrier, barrier_line, exited);
  fail(TK_DEADLOCK, place, "%u threads wait at a barrier at line %d, %u have exited", at_barrier, barrier_line, exited);
}

// Threads mostly follow each other, each on a stack that the others have evicted from the first-level cache.
static inline void prefetch_stack(unsigned thread) {
  const Fiber *fiber = thread < block->threads ? block->thread[thread].fiber : nullptr;
  if (!fiber) return;
  const auto top = static_cast<const char *>(fiber->stack_pointer);
  __builtin_prefetch(top);
  __builtin_prefetch(top + 64);
}

static inline void go_to(void **save, unsigned thread) {
  set_current(thread);
  ++counts.switches;
  Thread &to = block->thread[thread];
  if (block->state[thread] == kFresh) {
    to.fiber = take_fiber();
    block->state[thread] = kReady;
  }
  prefetch_stack(thread + 1);
  tk_switch(save, to.fiber->stack_pointer);
}

static void leave_block(void **save, Reason reason) {
  left_because = reason;
  tk_switch(save, main_stack);
}

static inline bool waits_for_grid() { return block->at_grid && block->at_grid == block->alive; }

// The current thread can't go on: somebody else runs until it is its turn again.
static void switch_away() {
  Thread &me = block->thread[current];
  char here;
  if (__builtin_expect(&here < me.fiber->low + 512, 0)) fail(TK_CRASH, {}, "stack overflow");
  const unsigned self = current;
  const int next = next_or_converged();
  if (next < 0) {
    if (!waits_for_grid()) deadlock();
    leave_block(&me.fiber->stack_pointer, kWaitsForGrid);
    return;
  }
  if (unsigned(next) == self)
    set_current(self);
  else
    go_to(&me.fiber->stack_pointer, unsigned(next));
}

void block_thread(State why) {
  block->state[current] = why;
  clear_ready(current);
  switch_away();
}

// Lanes of a warp that completed a collective are ready. Which of them goes on first depends on the schedule: like a GPU means the
// next warp's turn, otherwise the last to arrive just goes on.
void after_collective() {
  block->idle_yields = 0;
  if (schedule_is_gpu()) switch_away();
}

void yield_current() {
  Thread &me = block->thread[current];
  unsigned ready = 0;
  for (unsigned word = 0; word < (block->threads + 63) / 64; ++word) ready += __builtin_popcountll(block->ready[word]);
  if (++block->idle_yields > ready) {
    block->idle_yields = 0;
    leave_block(&me.fiber->stack_pointer, kStalled);
    return;
  }
  const unsigned self = current;
  const int next = next_in_order();
  if (next < 0 || unsigned(next) == self)
    set_current(self);
  else
    go_to(&me.fiber->stack_pointer, unsigned(next));
}

static void shuffle_order() {
  const unsigned n = block->threads;
  for (unsigned i = n - 1; i > 0; --i) {
    const unsigned j = next_random() % (i + 1);
    const uint16_t other = block->order[i];
    block->order[i] = block->order[j];
    block->order[j] = other;
  }
  for (unsigned i = 0; i < n; ++i) block->place[block->order[i]] = uint16_t(i);
}

static void all_waiting_are_ready(State waiting) {
  const unsigned n = block->threads;
  if (launch->schedule == TK_RANDOM) shuffle_order();
  if (block->alive == n) {
    memset(block->state, kReady, n);
    for (unsigned word = 0; word < n / 64; ++word) block->ready[word] = ~0ull;
    if (n % 64) block->ready[n / 64] = (1ull << (n % 64)) - 1;
  } else {
    memset(block->ready, 0, sizeof block->ready);
    for (unsigned t = 0; t < n; ++t)
      if (block->state[t] == waiting) make_ready(t);
  }
  block->cursor = 0;
  block->idle_yields = 0;
}

static void release_barrier() {
  if (block->barrier_mixed) {
    // A GPU counts arrivals wherever they come from, so its schedule goes on; the others report the divergence.
    if (schedule_is_gpu() && !checking) {
      if (!counts.divergence_line) counts.divergence_line = block->barrier_mixed;
    } else {
      Place place;
      place.line = block->barrier_mixed;
      for (unsigned t = 0; t < block->threads; ++t)
        if (block->state[t] == kAtBarrier && block->thread[t].line == place.line) {
          set_current(t);
          break;
        }
      fail(TK_BARRIER_DIVERGENCE, place, "threads of one block meet at barriers of line %d and of line %d",
           block->barrier_line, block->barrier_mixed);
    }
  }
  if (checking) check_barrier(block);
  all_waiting_are_ready(kAtBarrier);
  block->at_barrier = 0;
  block->barrier_line = block->barrier_mixed = 0;
  block->parity ^= 1;
  block->reduction[block->parity][TK_BARRIER_COUNT] = 0;
  block->reduction[block->parity][TK_BARRIER_AND] = 1;
  block->reduction[block->parity][TK_BARRIER_OR] = 0;
}

static void thread_done() {
  finish_copies();
  if (checking) check_settled();
  block->state[current] = kDone;
  clear_ready(current);
  --block->alive;
  block->idle_yields = 0;
  if (block->at_barrier && block->at_barrier == block->alive) release_barrier();
  lane_exited(current);
}

static void thread_main() {
  for (;;) {
    launch->kernel->entry(launch->args);
    reset_rounding();
    Fiber *fiber = block->thread[current].fiber;
    thread_done();
    if (!block->alive) {
      release_fiber(fiber);
      leave_block(&fiber->stack_pointer, kFinished);
      continue;
    }
    const int next = next_or_converged();
    if (next < 0) {
      if (!waits_for_grid()) deadlock();
      release_fiber(fiber);
      leave_block(&fiber->stack_pointer, kWaitsForGrid);
      continue;
    }
    if (block->state[next] == kFresh) {
      // A thread that has not started can have this stack: no switch.
      set_current(unsigned(next));
      block->thread[next].fiber = fiber;
      block->state[next] = kReady;
      continue;
    }
    release_fiber(fiber);
    go_to(&fiber->stack_pointer, unsigned(next));
  }
}

void start_block(Block *b, unsigned threads) {
  block = b;
  b->threads = b->alive = threads;
  b->at_barrier = b->at_grid = b->converging = b->cursor = b->idle_yields = 0;
  b->barrier_line = b->barrier_mixed = 0;
  b->parity = 0;
  b->reduction[0][TK_BARRIER_COUNT] = 0;
  b->reduction[0][TK_BARRIER_AND] = 1;
  b->reduction[0][TK_BARRIER_OR] = 0;
  memset(b->state, kFresh, threads);
  static uint16_t ascending[kMaxThreads], descending[kMaxThreads];
  static unsigned made_for;
  if (made_for != threads) {
    for (unsigned t = 0; t < threads; ++t) {
      ascending[t] = uint16_t(t);
      descending[t] = uint16_t(threads - 1 - t);
    }
    made_for = threads;
  }
  if (launch->schedule == TK_RANDOM) {
    b->order = b->own_order;
    b->place = b->own_place;
    memcpy(b->order, ascending, threads * sizeof(uint16_t));
    shuffle_order();
  } else {
    b->order = b->place = launch->schedule == TK_REVERSE ? descending : ascending;
  }
  memset(b->ready, 0, sizeof b->ready);
  for (unsigned word = 0; word < threads / 64; ++word) b->ready[word] = ~0ull;
  if (threads % 64) b->ready[threads / 64] = (1ull << (threads % 64)) - 1;
  begin_warps(b);
}

Reason run_block(Block *b) {
  block = b;
  tk_block_index = b->index;
  enter_block_memory(b);
  const int next = next_in_order();
  if (next < 0) deadlock();
  go_to(&main_stack, unsigned(next));
  reset_arithmetic();
  return left_because;
}

void release_grid_barrier(Block *b) {
  block = b;
  all_waiting_are_ready(kAtGrid);
  b->at_grid = 0;
}

void forget_fibers() {
  // After a launch every fiber is free; hand them out from the lowest stack again so that launches touch few pages.
  free_fibers = nullptr;
  for (unsigned i = fibers_made; i-- > 0;) release_fiber(&fibers[i]);
}

}  // namespace tk

using namespace tk;

extern "C" void tk_barrier(int line) {
  if (checking) check_settled();
  Thread &me = block->thread[current];
  me.line = line;
  if (!block->at_barrier++)
    block->barrier_line = line;
  else if (line != block->barrier_line && !block->barrier_mixed)
    block->barrier_mixed = line;
  block->state[current] = kAtBarrier;
  clear_ready(current);
  if (block->at_barrier == block->alive) release_barrier();
  switch_away();
}

extern "C" int tk_barrier_reduce(int line, int operation, int predicate) {
  const Block *mine = block;
  const unsigned parity = block->parity;
  int *sums = block->reduction[parity];
  sums[TK_BARRIER_COUNT] += predicate != 0;
  sums[TK_BARRIER_AND] &= predicate != 0;
  sums[TK_BARRIER_OR] |= predicate != 0;
  tk_barrier(line);
  return mine->reduction[parity][operation];
}

extern "C" void tk_grid_barrier(int line) {
  Place place;
  place.line = line;
  if (!launch->cooperative) fail(TK_TRAP, place, "grid synchronisation in a launch that is not cooperative");
  block->thread[current].line = line;
  ++block->at_grid;
  block_thread(kAtGrid);
}

extern "C" void tk_yield() {
  if (in_launch) yield_current();
}

extern "C" void tk_preempted() {
  ++counts.preemptions;
  yield_current();
}

extern "C" unsigned int tk_lane() { return current & 31; }

extern "C" unsigned int tk_thread_rank() { return current; }
