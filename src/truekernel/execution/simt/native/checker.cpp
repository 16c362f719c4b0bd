// Shadow memory: for every four bytes who wrote and read them last, and which of them hold a value.
#include "checker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <initializer_list>

#include "fault.h"
#include "module.h"
#include "scheduler.h"

namespace tk {

bool checking;

namespace {

struct Past {
  Stamp stamp;    // phase 0: no access yet
  uint32_t pc;    // offset in the library
  uint8_t bytes;  // which of the four
  bool strong;    // atomic or volatile
};

struct Cell {
  Past write;
  Past other_write;  // an atomic or volatile write before it by another thread: both may be unordered with what follows
  Past reads[2];
  uint32_t owner;   // shared memory: serial number of the block that the rest is about
  uint8_t valid;    // bytes that hold a value
};

struct Region {
  uint64_t low, size;
  Cell *cells;
  bool shared, always_valid;
};

constexpr unsigned kMaxBuffers = 256;
Region buffers[kMaxBuffers];
unsigned regions, last_region;
const tk_arena *shadowed;
Region globals;
Cell *shared_cells[kMaxResident];
uint64_t shared_cells_bytes[kMaxResident];
// For each byte of the library's static shared memory: 0 no variable covers it, 1 one does, 2 a compiler's guard of an initialisation
// (g++ makes one for an array of __half; it is poison, hence "done").
uint8_t *covered;
const tk_module *covered_module;
SharedBounds bounds;

// A plain read of what another thread wrote atomically: fine if the reader's next atomic operation is on the same address (the
// first guess of a compare-and-swap loop), else a race.
struct Guess {
  uint64_t address;
  Past other;
  uint32_t pc;
};
Guess guesses[kMaxResident][kMaxThreads];
bool any_guess;

Guess &my_guess() { return guesses[block->slot][current]; }

Cell *new_cells(uint64_t bytes) {
  const uint64_t size = (bytes / 4 + 2) * sizeof(Cell);
  void *p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) fail(TK_INFRASTRUCTURE, {}, "no memory to check accesses with");
  return static_cast<Cell *>(p);
}

void forget_cells(Region &region) {
  if (region.cells) munmap(region.cells, (region.size / 4 + 2) * sizeof(Cell));
  region.cells = nullptr;
}

void shadow_buffers() {
  for (unsigned i = 0; i < regions; ++i) forget_cells(buffers[i]);
  regions = buffer_count();
  if (regions > kMaxBuffers) fail(TK_INFRASTRUCTURE, {}, "more than %u buffers", kMaxBuffers);
  for (unsigned i = 0; i < regions; ++i)
    buffers[i] = {reinterpret_cast<uint64_t>(buffer_start(i)), buffer_bytes(i), new_cells(buffer_bytes(i)), false,
                  (buffer_role(i) & 15) != TK_SCRATCH};
  last_region = 0;
  shadowed = active_arena;
}

void shadow_globals() {
  const Code &code = module_code(active_module);
  const uint64_t size = code.data_high - code.data_low;
  forget_cells(globals);
  globals = {code.data_low, size, size ? new_cells(size) : nullptr, false, true};
}

void map_shared_variables() {
  if (covered_module == active_module) return;
  covered_module = active_module;
  free(covered);
  const uint64_t size = module_tls_size(active_module);
  covered = static_cast<uint8_t *>(calloc(size + 16, 1));
  size_t count;
  const SharedVariable *variables = module_shared(active_module, &count);
  for (size_t i = 0; i < count; ++i)
    if (variables[i].offset + variables[i].size <= size) memset(covered + variables[i].offset, strncmp(variables[i].name, "_ZGV", 4) ? 1 : 2, variables[i].size);
}

[[noreturn]] void report_race(const char *what, const Past &other, const Place &place) {
  tk_report report;
  fill_report(&report, TK_RACE, place);
  report.other_pc = other.pc;
  const uint3 &t = thread_indices[other.stamp.thread], b = block_of_start(other.stamp.start);
  report.other_thread[0] = t.x, report.other_thread[1] = t.y, report.other_thread[2] = t.z;
  report.other_block[0] = b.x, report.other_block[1] = b.y, report.other_block[2] = b.z;
  const bool same = other.stamp.start == stamp_now().start;
  snprintf(report.message, sizeof report.message, "%s without synchronisation, with %s of %s block", what,
           same ? "another thread" : "a thread", same ? "the same" : "another");
  send_and_exit(&report);
}

void resolve_guess() {
  const Guess &guess = my_guess();
  if (!guess.address) return;
  Place place;
  place.address = guess.address;
  place.pc = module_code(active_module).base + guess.pc;
  report_race("read after an atomic write", guess.other, place);
}

inline bool conflicts(const Past &past, uint8_t bytes) {
  return past.stamp.phase && (past.bytes & bytes) && !happened_before(past.stamp);
}

void remember_read(Cell &cell, const Past &now) {
  // Keep readers that somebody may still race with: replace one that is ordered before this read, or of the same thread.
  for (Past &read : cell.reads)
    if (!read.stamp.phase || (read.stamp.thread == now.stamp.thread && read.stamp.start == now.stamp.start) ||
        happened_before(read.stamp)) {
      const bool same = read.stamp.phase == now.stamp.phase && read.stamp.thread == now.stamp.thread &&
                        read.stamp.start == now.stamp.start && read.stamp.time == now.stamp.time;
      const uint8_t before = same ? read.bytes : 0;
      read = now;
      read.bytes |= before;
      return;
    }
  // Two readers of one warp tell less than readers of two.
  const unsigned warp = now.stamp.thread / kWarp;
  if (cell.reads[0].stamp.thread / kWarp == warp && cell.reads[0].stamp.start == now.stamp.start) return;
  cell.reads[1] = now;
}

void check_cell(Cell &cell, uint8_t bytes, Access kind, const Region &region, const Place &place, const Past &now) {
  const bool strong = now.strong;
  const bool writes = place.write, reads = kind != Access::write && kind != Access::volatile_write;
  if (!region.always_valid) {
    if (region.shared && cell.owner != block_serial()) {
      memset(&cell, 0, sizeof cell);
      cell.owner = block_serial();
    }
    if (reads && (cell.valid & bytes) != bytes)
      fail(TK_UNINITIALISED_READ, place, "read of %s that was never written", region.shared ? "shared memory" : "memory");
  }
  for (const Past *past : {&cell.write, &cell.other_write}) {
    if ((strong && past->strong) || !conflicts(*past, bytes)) continue;
    if (writes || !past->strong) report_race(writes ? "write after a write" : "read after a write", *past, place);
    resolve_guess();
    my_guess() = {place.address, *past, now.pc};
    any_guess = true;
    break;
  }
  if (writes) {
    for (Past &read : cell.reads) {
      if (strong && read.stamp.thread == current && read.stamp.start == now.stamp.start) {
        read.stamp.phase = 0;  // that read was a guess
        continue;
      }
      if (conflicts(read, bytes) && !(strong && read.strong)) report_race("write after a read", read, place);
    }
    const bool same = cell.write.stamp.phase == now.stamp.phase && cell.write.stamp.thread == now.stamp.thread &&
                      cell.write.stamp.start == now.stamp.start && cell.write.stamp.time == now.stamp.time &&
                      cell.write.strong == strong;
    const uint8_t before = same ? cell.write.bytes : 0;
    if (!strong)
      cell.other_write.stamp.phase = 0;
    else if (cell.write.strong && cell.write.stamp.phase && !happened_before(cell.write.stamp))
      cell.other_write = cell.write;
    cell.write = now;
    cell.write.bytes |= before;
    cell.valid |= bytes;
  } else {
    remember_read(cell, now);
  }
}

// The region that holds the whole access; null when it is none of ours (a thread's own stack, constants).
const Region *region_of(uint64_t address, unsigned size, Region *temporary, const Place &place) {
  const uint64_t in_last = address - buffers[last_region].low;
  if (in_last < buffers[last_region].size && in_last + size <= buffers[last_region].size) return &buffers[last_region];
  if (shared_contains(address)) {
    const uint64_t in_static = address - bounds.static_low;
    const uint64_t in_dynamic = address - bounds.dynamic_low;
    const bool in_dynamic_memory = in_dynamic < bounds.dynamic_size && in_dynamic + size <= bounds.dynamic_size;
    const bool in_variable = in_static < bounds.static_size && in_static + size <= bounds.static_size &&
                             covered[in_static] && covered[in_static + size - 1];
    if (!in_dynamic_memory && !in_variable) fail_out_of_bounds(place);
    if (in_variable && covered[in_static] == 2) return nullptr;
    *temporary = {bounds.static_low, shared_cells_bytes[block->slot], shared_cells[block->slot], true, false};
    return temporary;
  }
  if (arena_contains(address)) {
    for (unsigned i = 0; i < regions; ++i)
      if (address - buffers[i].low < buffers[i].size) {
        if (address - buffers[i].low + size > buffers[i].size) break;
        last_region = i;
        return &buffers[i];
      }
    fail_out_of_bounds(place);
  }
  if (address - globals.low < globals.size) return &globals;
  return nullptr;
}

}  // namespace

void check_access(uint64_t address, unsigned size, Access kind, uint64_t pc, int line) {
  if (!in_launch || !block) return;
  ++counts.accesses;
  Place place;
  place.pc = pc;
  place.line = line;
  place.address = address;
  place.size = size;
  place.write = kind == Access::write || kind == Access::volatile_write || kind == Access::atomic;
  Region temporary;
  const Region *region = region_of(address, size, &temporary, place);
  if (!region) return;
  Past now;
  now.stamp = stamp_now();
  now.pc = line ? 0 : uint32_t(pc - module_code(active_module).base);
  now.strong = kind == Access::atomic || kind == Access::volatile_read || kind == Access::volatile_write;
  uint64_t offset = address - region->low;
  const uint64_t end = offset + size;
  while (offset < end) {
    const uint64_t cell_start = offset & ~3ull;
    const unsigned first = unsigned(offset - cell_start);
    const unsigned last = end - cell_start < 4 ? unsigned(end - cell_start) : 4;
    now.bytes = uint8_t(((1u << last) - 1) & ~((1u << first) - 1));
    place.address = region->low + offset;
    check_cell(region->cells[offset >> 2], now.bytes, kind, *region, place, now);
    offset = cell_start + 4;
  }
}

void check_atomic(const volatile void *address, unsigned size, int line) {
  const auto a = reinterpret_cast<uint64_t>(address);
  if (any_guess && my_guess().address - a < size) my_guess().address = 0;
  check_access(a, size, Access::atomic, 0, line);
  acquire_from(address);
}

void check_atomic_end(const volatile void *address, bool changed) {
  if (changed) release_to(address);
}

void check_settled() {
  if (any_guess) resolve_guess();
}

void check_begin_launch() {
  if (launch_number == 0 || shadowed != active_arena) shadow_buffers();
  if (launch_number == 0 || globals.low != module_code(active_module).data_low) shadow_globals();
  map_shared_variables();
  if (any_guess) memset(guesses, 0, sizeof guesses);
  any_guess = false;
  order_begin_launch();
}

void check_begin_block(Block *b) {
  order_begin_block(b);
  const uint64_t needed = shared_bytes(b);
  if (needed <= shared_cells_bytes[b->slot]) return;
  Region old{0, shared_cells_bytes[b->slot], shared_cells[b->slot], true, false};
  forget_cells(old);
  shared_cells[b->slot] = new_cells(needed);
  shared_cells_bytes[b->slot] = needed;
}

void check_enter_block(Block *) { bounds = shared_bounds(); }

}  // namespace tk
