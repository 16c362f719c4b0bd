#include "checker.h"

#include <stdlib.h>
#include <string.h>

#include "knowledge.h"

namespace tk {

namespace {

struct BlockTimes {
  uint32_t start, serial;
  uint32_t latest;        // greatest time of any thread
  uint32_t barrier;       // accesses of the whole block with a time below this are known to the whole block
  unsigned with_knowledge;  // threads that have one of the three below
  uint32_t time[kMaxThreads];
  Knowledge *acquired[kMaxThreads];      // from other blocks or through variables
  Knowledge *fenced[kMaxThreads];        // what the thread's last device-wide fence covered
  Knowledge *fenced_block[kMaxThreads];  // ... and its last fence of any scope
  uint32_t seen[kMaxWarps][kWarp][kWarp];  // by warp synchronisation: [warp][knower][known] accesses below this time
};

BlockTimes *times[kMaxResident];
uint16_t phase;
uint32_t starts, serials;

struct Variable {
  const volatile void *address;
  Knowledge *device;
  Knowledge *local;  // released by fences of block scope, good for that block only
  uint32_t local_start;
};
Variable *variables;
size_t variable_count, variable_capacity;

size_t slot_of(const volatile void *address) {
  const uint64_t hash = reinterpret_cast<uint64_t>(address) * 0x9E3779B97F4A7C15ull;
  size_t slot = (hash >> 20) & (variable_capacity - 1);
  while (variables[slot].address && variables[slot].address != address) slot = (slot + 1) & (variable_capacity - 1);
  return slot;
}

Variable *find_variable(const volatile void *address) {
  if (!variable_count) return nullptr;
  Variable *v = &variables[slot_of(address)];
  return v->address ? v : nullptr;
}

Variable *make_variable(const volatile void *address) {
  if (2 * (variable_count + 1) > variable_capacity) {
    Variable *old = variables;
    const size_t old_capacity = variable_capacity;
    variable_capacity = old_capacity ? 2 * old_capacity : 64;
    variables = static_cast<Variable *>(calloc(variable_capacity, sizeof(Variable)));
    for (size_t i = 0; i < old_capacity; ++i)
      if (old[i].address) variables[slot_of(old[i].address)] = old[i];
    free(old);
  }
  Variable *v = &variables[slot_of(address)];
  if (!v->address) {
    v->address = address;
    ++variable_count;
  }
  return v;
}

void forget_variables() {
  for (size_t i = 0; i < variable_capacity; ++i)
    if (variables[i].address) {
      drop(variables[i].device);
      drop(variables[i].local);
      variables[i].address = nullptr;
    }
  variable_count = 0;
}

BlockTimes &mine() { return *times[block->slot]; }

void forget(BlockTimes &t, unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) {
    drop(t.acquired[i]);
    drop(t.fenced[i]);
    drop(t.fenced_block[i]);
  }
}

void advance(BlockTimes &t, unsigned thread) {
  if (++t.time[thread] > t.latest) t.latest = t.time[thread];
}

// All that the current thread knows now, itself included.
Knowledge *everything_known() {
  BlockTimes &t = mine();
  Knowledge *k = new_knowledge();
  learn(k, whole_block(t.start), t.barrier);
  learn(k, one_thread(t.start, current), t.time[current]);
  const uint32_t *seen = t.seen[current / kWarp][current % kWarp];
  for (unsigned lane = 0; lane < kWarp; ++lane)
    if (seen[lane] > t.barrier) learn(k, one_thread(t.start, current / kWarp * kWarp + lane), seen[lane]);
  learn_all(k, t.acquired[current]);
  return k;
}

void share_in_block(Knowledge **of_thread) {
  Knowledge *all = nullptr;
  for (unsigned i = 0; i < block->threads; ++i) learn_all(all, of_thread[i]);
  if (!all) return;
  for (unsigned i = 0; i < block->threads; ++i) {
    if (of_thread[i] == all) continue;
    drop(of_thread[i]);
    of_thread[i] = share(all);
  }
  drop(all);
}

}  // namespace

Stamp stamp_now() {
  const BlockTimes &t = mine();
  return {t.start, t.time[current], uint16_t(current), phase};
}

uint32_t block_serial() { return mine().serial; }

bool happened_before(const Stamp &earlier) {
  if (earlier.phase != phase) return true;
  const BlockTimes &t = mine();
  if (earlier.start == t.start) {
    if (earlier.thread == current || earlier.time < t.barrier) return true;
    if (earlier.thread / kWarp == current / kWarp &&
        earlier.time < t.seen[current / kWarp][current % kWarp][earlier.thread % kWarp])
      return true;
  }
  return t.with_knowledge && knows(t.acquired[current], earlier.start, earlier.thread, earlier.time);
}

void acquire_from(const volatile void *address) {
  const Variable *v = find_variable(address);
  if (!v) return;
  BlockTimes &t = mine();
  learn_all(t.acquired[current], v->device);
  if (v->local && v->local_start == t.start) learn_all(t.acquired[current], v->local);
  t.with_knowledge = 1;
}

void release_to(const volatile void *address) {
  BlockTimes &t = mine();
  if (!t.with_knowledge || !t.fenced_block[current]) return;
  Variable *v = make_variable(address);
  learn_all(v->device, t.fenced[current]);
  if (v->local_start != t.start) drop(v->local);
  v->local_start = t.start;
  learn_all(v->local, t.fenced_block[current]);
}

void order_begin_launch() {
  if (launch_number == 0) phase = 0;
  ++phase;
  starts = 0;
  forget_variables();
}

void order_begin_block(Block *b) {
  BlockTimes *&t = times[b->slot];
  if (!t)
    t = static_cast<BlockTimes *>(calloc(1, sizeof(BlockTimes)));
  else
    forget(*t, kMaxThreads);
  t->start = starts++;
  t->serial = ++serials;
  t->latest = t->barrier = 1;
  t->with_knowledge = 0;
  for (unsigned i = 0; i < b->threads; ++i) t->time[i] = 1;
  memset(t->seen, 0, sizeof t->seen[0] * ((b->threads + kWarp - 1) / kWarp));
}

void check_barrier(Block *b) {
  BlockTimes &t = *times[b->slot];
  t.barrier = ++t.latest;
  for (unsigned i = 0; i < b->threads; ++i) t.time[i] = t.barrier;
  if (!t.with_knowledge) return;
  share_in_block(t.acquired);
  share_in_block(t.fenced);
  share_in_block(t.fenced_block);
}

void check_warp_sync(Block *b, unsigned warp, unsigned lanes) {
  BlockTimes &t = *times[b->slot];
  uint32_t all[kWarp] = {};
  Knowledge *acquired = nullptr;
  for (unsigned rest = lanes; rest; rest &= rest - 1) {
    const unsigned lane = unsigned(__builtin_ctz(rest)), thread = warp * kWarp + lane;
    advance(t, thread);
    for (unsigned other = 0; other < kWarp; ++other)
      if (t.seen[warp][lane][other] > all[other]) all[other] = t.seen[warp][lane][other];
    if (t.with_knowledge) learn_all(acquired, t.acquired[thread]);
  }
  for (unsigned rest = lanes; rest; rest &= rest - 1) {
    const unsigned lane = unsigned(__builtin_ctz(rest));
    all[lane] = t.time[warp * kWarp + lane];
  }
  for (unsigned rest = lanes; rest; rest &= rest - 1) {
    const unsigned lane = unsigned(__builtin_ctz(rest));
    memcpy(t.seen[warp][lane], all, sizeof all);
    if (acquired) learn_all(t.acquired[warp * kWarp + lane], acquired);
  }
  drop(acquired);
}

void check_grid_barrier() {
  if (checking) ++phase;
}

void check_fence(int scope) {
  BlockTimes &t = mine();
  advance(t, current);
  Knowledge *k = everything_known();
  if (scope == TK_FENCE_DEVICE) {
    drop(t.fenced[current]);
    t.fenced[current] = share(k);
  }
  drop(t.fenced_block[current]);
  t.fenced_block[current] = k;
  t.with_knowledge = 1;
}

}  // namespace tk
