// One launch: refuse what a GPU refuses, then run all blocks, several of them resident when one has to wait for another.
#include <string.h>
#include <sys/mman.h>

#include "order.h"
#include "scheduler.h"

namespace tk {

static Block *blocks[kMaxResident];
static unsigned resident_limit;
static uint64_t blocks_total, blocks_started;

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b) {
  while (b) {
    const uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static uint64_t order_stride, order_offset;

static void choose_block_order() {
  order_stride = 1;
  order_offset = 0;
  if (launch->schedule != TK_RANDOM) return;
  if (blocks_total > 2) order_stride = uint64_t(double(blocks_total) * 0.6180339887) | 1;
  while (greatest_common_divisor(order_stride, blocks_total) != 1) ++order_stride;
  order_offset = next_random() % blocks_total;
}

// Linear number of the block that starts as number `k`.
static uint64_t block_at(uint64_t k) {
  if (launch->schedule == TK_REVERSE) return blocks_total - 1 - k;
  return (order_offset + k * order_stride) % blocks_total;
}

uint3 block_of_start(uint32_t start) {
  const uint64_t number = block_at(start);
  const uint32_t *g = launch->grid;
  return {unsigned(number % g[0]), unsigned(number / g[0] % g[1]), unsigned(number / g[0] / g[1])};
}

static void refuse_unless_valid(const tk_launch_spec *spec) {
  const uint32_t *g = spec->grid, *b = spec->block;
  const uint64_t threads = uint64_t(b[0]) * b[1] * b[2];
  if (!g[0] || !g[1] || !g[2] || !threads)
    fail(TK_TRAP, {}, "launch refused: grid (%u, %u, %u), block (%u, %u, %u) has a zero", g[0], g[1], g[2], b[0], b[1], b[2]);
  if (g[0] > 0x7fffffffu || g[1] > 65535 || g[2] > 65535)
    fail(TK_TRAP, {}, "launch refused: grid (%u, %u, %u), at most (2147483647, 65535, 65535)", g[0], g[1], g[2]);
  if (b[0] > 1024 || b[1] > 1024 || b[2] > 64 || threads > kMaxThreads)
    fail(TK_TRAP, {}, "launch refused: block (%u, %u, %u), at most (1024, 1024, 64) and 1024 threads", b[0], b[1], b[2]);
  const uint32_t most = spec->kernel->max_threads;
  if (most && threads > most)
    fail(TK_TRAP, {}, "launch refused: %llu threads in a block, __launch_bounds__ allows %u", (unsigned long long)threads, most);
  uint64_t shared = spec->dynamic_shared;
  // Only a big sum makes it worth while to find out which of the library's variables belong to this kernel.
  if (shared + module_tls_size(spec->module) > 48 * 1024) shared += kernel_static_shared(spec->module, spec->kernel);
  if (shared > kMaxShared)
    fail(TK_TRAP, {}, "launch refused: %llu bytes of shared memory, at most %llu", (unsigned long long)shared,
         (unsigned long long)kMaxShared);
  const uint64_t total = uint64_t(g[0]) * g[1] * g[2];
  if (spec->cooperative && (total > kMaxResident || total * threads > kMaxFibers))
    fail(TK_TRAP, {}, "launch refused: a cooperative launch of %llu blocks of %llu threads can't be resident",
         (unsigned long long)total, (unsigned long long)threads);
}

static Block *take_slot(unsigned slot) {
  if (!blocks[slot]) {
    blocks[slot] = static_cast<Block *>(
        mmap(nullptr, sizeof(Block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    blocks[slot]->slot = slot;
  }
  return blocks[slot];
}

static Block *start_next(unsigned slot) {
  Block *b = take_slot(slot);
  const uint64_t number = block_at(blocks_started++);
  const uint32_t *g = launch->grid;
  b->number = uint32_t(number);
  b->index = {unsigned(number % g[0]), unsigned(number / g[0] % g[1]), unsigned(number / g[0] / g[1])};
  prepare_block_memory(b, module_tls_size(launch->module), launch->dynamic_shared);
  start_block(b, threads_per_block);
  if (checking) check_begin_block(b);
  return b;
}

// Suspended blocks, oldest first, and the slots that nobody uses.
struct Residents {
  Block *suspended[kMaxResident];
  unsigned count = 0, waiting = 0;  // of them waiting for the grid
  bool waits[kMaxResident];
  unsigned free_slots[kMaxResident];
  unsigned free_count = 0;

  void add(Block *b, bool waits_for_grid) {
    waits[count] = waits_for_grid;
    suspended[count++] = b;
    waiting += waits_for_grid;
  }
  Block *take_oldest_runnable() {
    for (unsigned i = 0; i < count; ++i) {
      if (waits[i]) continue;
      Block *b = suspended[i];
      --count;
      memmove(suspended + i, suspended + i + 1, (count - i) * sizeof *suspended);
      memmove(waits + i, waits + i + 1, (count - i) * sizeof *waits);
      return b;
    }
    return nullptr;
  }
};

static void run_blocks() {
  static Residents residents;
  residents.count = residents.waiting = residents.free_count = 0;
  for (unsigned slot = resident_limit; slot-- > 0;) residents.free_slots[residents.free_count++] = slot;
  uint64_t finished = 0;
  Block *next = nullptr;
  bool prefer_new = false;  // after a stall somebody who has not run yet may bring what the others wait for
  while (finished < blocks_total) {
    const bool can_start = blocks_started < blocks_total && residents.free_count;
    if (!prefer_new || !can_start) next = residents.take_oldest_runnable();
    if (!next && can_start) next = start_next(residents.free_slots[--residents.free_count]);
    if (!next) {
      // Everybody waits for the grid: a cooperative launch has all its blocks resident.
      if (finished) fail(TK_DEADLOCK, {}, "blocks wait for the grid, %llu have exited", (unsigned long long)finished);
      check_grid_barrier();
      for (unsigned i = 0; i < residents.count; ++i) {
        release_grid_barrier(residents.suspended[i]);
        residents.waits[i] = false;
      }
      residents.waiting = 0;
      continue;
    }
    Block *running = next;
    next = nullptr;
    prefer_new = false;
    switch (run_block(running)) {
      case kFinished:
        ++finished;
        residents.free_slots[residents.free_count++] = running->slot;
        break;
      case kStalled:
        residents.add(running, false);
        prefer_new = true;
        break;
      case kWaitsForGrid:
        residents.add(running, true);
        break;
    }
  }
}

static void set_thread_indices(const uint32_t *b) {
  static uint32_t made[3];
  if (made[0] == b[0] && made[1] == b[1] && made[2] == b[2]) return;
  unsigned t = 0;
  for (unsigned z = 0; z < b[2]; ++z)
    for (unsigned y = 0; y < b[1]; ++y)
      for (unsigned x = 0; x < b[0]; ++x) thread_indices[t++] = {x, y, z};
  memcpy(made, b, sizeof made);
}

}  // namespace tk

using namespace tk;

extern "C" void tk_launch(const tk_launch_spec *spec, tk_launch_counts *out) {
  launch = spec;
  counts = {};
  active_arena = spec->arena;
  refuse_unless_valid(spec);
  const uint32_t *g = spec->grid, *b = spec->block;
  tk_grid_dim = {g[0], g[1], g[2]};
  tk_block_dim = {b[0], b[1], b[2]};
  threads_per_block = b[0] * b[1] * b[2];
  blocks_total = uint64_t(g[0]) * g[1] * g[2];
  blocks_started = 0;
  resident_limit = kMaxFibers / threads_per_block;
  if (resident_limit > kMaxResident) resident_limit = kMaxResident;
  random_state = (spec->seed + 1 + launch_number) * 0x9E3779B97F4A7C15ull | 1;
  choose_block_order();
  set_thread_indices(b);
  enter_module(spec->module);
  checking = spec->kernel->checked != 0;
  forget_fibers();
  begin_heap();
  if (checking) check_begin_launch();
  in_launch = true;
  run_blocks();
  in_launch = false;
  block = nullptr;
  ++launch_number;
  if (out) *out = counts;
}
