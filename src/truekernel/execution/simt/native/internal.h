// State that the runtime's files share. One device thread runs at a time, all in one host thread.
#pragma once
#include <stdarg.h>

#include "include/tk_abi.h"
#include "runtime.h"

namespace tk {

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kWarp = 32;
constexpr unsigned kMaxWarps = kMaxThreads / kWarp;
constexpr unsigned kMaxResident = 256;         // blocks whose threads may be suspended at the same time
constexpr unsigned kMaxFibers = 16384;         // suspended threads of all resident blocks together
constexpr uint64_t kMaxShared = 227 * 1024;    // bytes of shared memory that one block may have
constexpr size_t kPage = 4096;
constexpr size_t kFar = size_t(36) << 30;      // farther than a 32-bit index of 8-byte elements reaches

enum State : uint8_t { kFresh, kReady, kAtBarrier, kAtWarp, kAtGrid, kDone };

struct Fiber {
  void *stack_pointer;
  char *low, *high;
  Fiber *next_free;
};

struct Thread {
  Fiber *fiber;
  uint64_t value, result;
  unsigned mask;
  int line, kind, argument;
};

// Lanes of one warp that wait in a collective.
struct Warp {
  unsigned exists, exited;
  unsigned converging;  // lanes that ask which lanes are active
  unsigned arrived, mask;
  int kind;
  bool mixed;  // lanes wait with different masks or kinds
  uint64_t gathered[2][kWarp];
  unsigned gathers;
};

struct Block {
  uint3 index;
  uint32_t number;      // linear block number in the grid
  uint32_t slot;        // which shared memory slab
  unsigned threads, alive, at_barrier, at_grid, converging;
  unsigned cursor;      // position in `order` where the search for a ready thread goes on
  unsigned current;     // thread that ran last
  unsigned idle_yields; // yields since something else happened in the block
  unsigned parity;      // of the barrier, for reductions
  int barrier_line, barrier_mixed;  // line of the first to arrive, first line that differs from it
  int reduction[2][3];
  char *shared, *dynamic;
  uint16_t *order, *place;
  uint64_t ready[kMaxThreads / 64];  // by position
  uint8_t state[kMaxThreads];
  Warp warp[kMaxWarps];
  Thread thread[kMaxThreads];
  uint16_t own_order[kMaxThreads], own_place[kMaxThreads];
};

// ---------------------------------------------------------------- scheduler
extern Block *block;             // whose thread runs now; null outside a launch
extern unsigned current;         // that thread's number
extern const tk_launch_spec *launch;
extern uint32_t launch_number;   // within the execution
extern tk_launch_counts counts;
extern unsigned threads_per_block;
extern bool in_launch;
extern volatile int no_preemption;
void block_thread(State why);    // the current thread waits; returns when it is ready again and its turn
void make_ready(unsigned thread);
void yield_current();
bool schedule_is_gpu();
void initialise_fibers();
bool stack_contains(uint64_t address);
extern "C" void tk_preempted();
extern "C" void tk_preempt_entry();

// ---------------------------------------------------------------- asynchronous copies and the device heap
void finish_copies();  // of the current thread
void begin_heap();

// ---------------------------------------------------------------- warp
void begin_warps(Block *);
void lane_exited(unsigned thread);
bool release_converging();  // when nobody else in the block can run: true when somebody can now

// ---------------------------------------------------------------- faults
struct Place {
  int line = 0;
  uint64_t pc = 0;       // virtual address of the access or call, 0 = unknown
  uint64_t address = 0;  // virtual address accessed, 0 = none
  uint32_t size = 0;
  bool write = false;
};
// Ends the child with a report about the current thread.
[[noreturn]] void fail(tk_status status, const Place &place, const char *format, ...) __attribute__((format(printf, 3, 4)));
[[noreturn]] void send_and_exit(tk_report *report);
void fill_report(tk_report *report, tk_status status, const Place &place);
void install_signals();
void set_tick(long microseconds);
double cpu_seconds();

// ---------------------------------------------------------------- buffers
extern tk_arena *active_arena;
// Nearest buffer of the active arena: its number, or -1 when none is near. `offset`: from its start.
int nearest_buffer(uint64_t address, int64_t *offset, uint64_t *size);
bool arena_contains(uint64_t address);
// A write fault at `address`: true when it was the first write to a protected input, which is now writable.
bool unlock_on_write(uint64_t address);

// ---------------------------------------------------------------- shared memory and libraries
struct SharedVariable {
  uint64_t offset, size;  // within the module's block of thread-local storage
  const char *name;       // mangled
};
struct Code {
  uint64_t base, text_low, text_high, data_low, data_high;
};
extern tk_module *active_module;
const Code &module_code(const tk_module *);
uint64_t module_tls_size(const tk_module *);
const SharedVariable *module_shared(const tk_module *, size_t *count);  // sorted by offset
uint64_t kernel_static_shared(const tk_module *, const tk_kernel *);
void enter_module(tk_module *);
void enter_block_memory(Block *);             // makes the block's shared memory the current one
void prepare_block_memory(Block *, uint64_t static_bytes, uint64_t dynamic_bytes);  // poisons it
void initialise_shared();
struct SharedPlace {
  const char *name;  // mangled name of the variable at or before the address, or null
  int64_t offset;    // from the variable's start
  uint64_t size;     // of the variable
};
SharedPlace shared_place(uint64_t address);
bool shared_contains(uint64_t address);

// ---------------------------------------------------------------- checker (checked libraries only)
extern bool checking;
void check_begin_launch();
void check_begin_block(Block *);
void check_barrier(Block *);
void check_warp_sync(Block *, unsigned warp, unsigned lanes);
void check_grid_barrier();
void check_atomic(const volatile void *address, unsigned size, int line);
void check_atomic_end(const volatile void *address, bool changed);
void check_fence(int scope);
void check_settled();  // the current thread synchronises or ends
void check_enter_block(Block *);

// ---------------------------------------------------------------- sandbox
bool close_system_calls(int report_fd);
const char *system_call_name(int number);

}  // namespace tk
