// The C interface of the native runtime that executes CUDA kernels on a CPU.
//
// Who uses it: `server.cpp` (links every other .cpp of this folder statically) and, through the shim headers in
// include/, the compiled kernels (shared objects that find the runtime's symbols in the executable).
//
// Build of the executable (any of clang++, g++, zig c++):
//   c++ -std=c++17 -O2 -march=x86-64-v3 -fno-exceptions -fno-rtti -fno-strict-aliasing -rdynamic -I native native/*.cpp -ldl
//   -rdynamic is essential: kernels resolve tk_*, __tsan_*, __ubsan_handle_* and __tls_get_addr in the executable.
//
// Build of a kernel library (plain):
//   c++ -x c++ -std=c++17 -O1 -fPIC -shared -fvisibility=hidden -march=x86-64-v3 -w -gline-tables-only (g++: -g1)
//     -fno-exceptions -fno-math-errno -fno-trapping-math -fwrapv -fno-strict-aliasing -fno-delete-null-pointer-checks
//     -ffp-contract=off (or fast) -fno-stack-protector -fdata-sections -I native/include -include native/include/tk_shim.h
//   plus the checks for what a host does otherwise than a GPU, and for alignment, in both builds:
//     clang: -fsanitize=integer-divide-by-zero,shift-exponent,float-cast-overflow,alignment
//            -fsanitize-trap=integer-divide-by-zero,shift-exponent,float-cast-overflow,alignment
//     g++:   -fsanitize=integer-divide-by-zero,shift-exponent,float-cast-overflow,alignment (no trap flag: our handlers get
//            called; never link libubsan, so link with ld directly or with -nostdlib -nodefaultlibs)
// Checked build, in addition:
//   both:  -DTK_CHECKED=1 -fsanitize=thread        (only as an instrumenter: __tsan_* are ours; never link libtsan)
//   clang: -fsanitize=bounds -fsanitize-trap=bounds -mllvm -tsan-instrument-func-entry-exit=0 -mllvm -tsan-distinguish-volatile=1
//          -mllvm -tsan-instrument-read-before-write=1   (else the read of `x += 1` is not hooked, only its write)
//   g++:   -fsanitize=bounds --param=tsan-instrument-func-entry-exit=0 --param=tsan-distinguish-volatile=1
//   then shared_zones.widen(object_file) (Python, next to the toolchain) on the .o before it is linked: it puts a red zone
//   behind every static shared variable.
// Link: ld -shared -z now object.o -o library.so (no libraries; undefined symbols are found in the executable and libm).
//   The executable must keep libm loaded (-Wl,--no-as-needed -lm).
//
// One textual change of the CUDA source is needed (it keeps lines and, but for insertions, columns):
//   extern __shared__ [attributes] TYPE NAME[];   ->   extern TK_DYNAMIC_SHARED [attributes] TYPE NAME[] TK_DYNAMIC_LABEL;
//   at namespace or block scope, with attributes (__align__(n), alignas(n), __attribute__) before or after __shared__.
//
// Life of a process tree:
//   server: tk_initialise(); tk_module_open(); tk_arena_create() + fill tk_arena_pristine() + tk_arena_seal(); fork per variant
//   child:  tk_begin_child(); tk_set_variant(v); for each execution { tk_arena_reset(); tk_module_reset(); tk_begin_execution();
//           tk_launch() for each launch; tk_arena_check(); statistics; write results to the pipe } ; tk_child_exit()
//   Any fault ends the child: the runtime writes ONE tk_report to report_fd in one write() and exits with TK_EXIT_REPORTED.
//   A child that ends in another way without having delivered its results is a crash.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "include/tk_kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

// ------------------------------------------------------------------------------------------------ outcomes
enum tk_status {
  TK_OK = 0,
  TK_OUT_OF_BOUNDS = 1,
  TK_RACE = 2,
  TK_UNINITIALISED_READ = 3,
  TK_BARRIER_DIVERGENCE = 4,
  TK_DEADLOCK = 5,
  TK_MISALIGNED = 6,
  TK_TRAP = 7,          // __trap, assert, a system call from device code, a launch that a GPU refuses, an illegal warp mask
  TK_TIMEOUT = 8,
  TK_CRASH = 9,         // stack overflow, jump to nowhere, abort
  TK_HOST_DIFFERS = 10, // integer division by zero or overflow, shift >= width, float out of an integer's range
  TK_INFRASTRUCTURE = 11
};

enum { TK_EXIT_DONE = 96, TK_EXIT_REPORTED = 97 };  // the only exit statuses that a healthy child has

#define TK_REPORT_MAGIC 0x31525054u  // "TPR1"; the first four bytes of a report on the pipe

// Unknown values: line 0, buffer -1, pc 0. A pc is an offset into the kernel library's file image (what llvm-symbolizer
// --obj=LIB and addr2line -e LIB take); it is already moved back by one byte where it is a return address.
typedef struct tk_report {
  uint32_t magic;
  uint32_t size;             // sizeof(tk_report)
  uint32_t status;           // enum tk_status
  uint32_t tag;              // last value given to tk_begin_execution
  uint32_t launch;           // 0-based number of the launch within the execution
  uint32_t line;             // source line if the runtime knows it (collectives, traps), else 0: then use pc
  uint32_t thread[3], block[3];
  uint32_t has_thread;       // 1 when thread/block are meaningful
  int32_t buffer;            // index of the nearest buffer in the arena, -1: none, -2: shared memory (see name)
  int64_t offset;            // bytes from the buffer's (or shared variable's) start; negative before it
  uint64_t address;          // faulting virtual address or 0
  uint64_t pc;               // see above, 0 = unknown
  uint64_t other_pc;         // race: place of the earlier access, 0 = unknown
  uint32_t other_thread[3], other_block[3];  // race: who made the earlier access
  uint32_t access_size;      // bytes, 0 = unknown
  uint32_t is_write;
  double cpu_seconds;        // since tk_begin_execution
  char name[64];             // shared variable, when known
  char message[192];         // one line for people, without numbers of thread and block
} tk_report;

// ------------------------------------------------------------------------------------------------ process
// Once, in the server, before anything else. Reserves address space only. Returns 0, or -1 with errno.
int tk_initialise(void);

typedef struct tk_child_options {
  int report_fd;        // the pipe; the child may write to this descriptor only
  int allow_system_calls;  // 1 = no seccomp filter (tests, machines without seccomp)
} tk_child_options;

// In the child, first thing after fork: signal handlers on their own stack, CPU timer, seccomp filter (write(report_fd),
// memory calls, clocks, exit with one of the two statuses; anything else is TK_TRAP "system call"). Returns 1 when the filter
// is up, 0 when the machine can't (or it was not wanted). After it, open no files and start no threads.
int tk_begin_child(const tk_child_options *options);

// Which expression of a schema is active. Kernels see `extern "C" const int tk_variant`. Set after fork, before a launch.
void tk_set_variant(int variant);

// Starts an execution (all launches of one plan on one case): `tag` comes back in a report; `cpu_seconds` is the limit of
// CPU time from now on until the next tk_begin_execution or tk_end_execution (statistics don't count after tk_end_execution).
void tk_begin_execution(uint32_t tag, double cpu_seconds);
double tk_end_execution(void);  // CPU seconds since tk_begin_execution

// Writes all bytes to report_fd, in as many write() calls as needed; the child's only way out for results.
int tk_deliver(const void *bytes, size_t n);
void tk_child_exit(void) __attribute__((noreturn));

// ------------------------------------------------------------------------------------------------ kernel libraries
typedef struct tk_module tk_module;

// Kernels are exported with TK_EXPORT(symbol, launch bound, kernel expression) of tk_export.h, at the end of a source, one line each; see
// include/tk_kernel.h for what that defines.

// dlopen with all symbols bound. NULL on failure with a line in `error`. Do it in the server, before forking.
tk_module *tk_module_open(const char *path, char *error, size_t error_size);
const tk_kernel *tk_module_kernel(tk_module *, const char *symbol);  // NULL when there is none
uint64_t tk_module_static_shared(const tk_module *);                  // bytes of all its static shared variables
// In the child: __device__ and __constant__ variables as they were when the library was opened.
void tk_module_reset(tk_module *);
void tk_module_close(tk_module *);

// ------------------------------------------------------------------------------------------------ buffers
// An arena holds the buffers of one plan on one case. Each buffer: 256-byte aligned, 4 KiB of slack and less than an alignment more behind it, as much or more before
// it, both filled with a canary that is an ordinary number in every float format, then inaccessible pages; the arena itself lies in a reservation so wide that a 32-bit
// index can't leave it.
typedef struct tk_arena tk_arena;

enum tk_role {
  TK_INPUT = 1,      // a tensor of the case; written -> hazard, unless TK_MUTABLE
  TK_SCRATCH = 2,    // run.empty: starts with what pristine holds (poison unless overwritten), reading it first is uninitialised
  TK_ZEROED = 3,     // run.zeros: initialised; the arena fills zeros
  TK_MUTABLE = 16    // flag on TK_INPUT: the problem allows in-place writes
};

typedef struct tk_buffer_spec {
  uint64_t nbytes;
  uint32_t role;     // enum tk_role, | TK_MUTABLE
  uint32_t reserved;
} tk_buffer_spec;

// In the server. NULL with errno when memory lacks. All contents start as 0xFF bytes (TK_ZEROED: 0).
tk_arena *tk_arena_create(const tk_buffer_spec *specs, uint32_t count);
// The server's writable view of a buffer's initial contents: what every reset brings back. Fill it before forking.
void *tk_arena_pristine(tk_arena *, uint32_t buffer);
// In the server, when all is filled: nobody can change the contents from now on. -1 with errno when it can't be done.
int tk_arena_seal(tk_arena *);
// The address that kernels get, in any child; the buffer is there from the child's first reset on.
void *tk_arena_address(const tk_arena *, uint32_t buffer);
uint64_t tk_arena_size(const tk_arena *, uint32_t buffer);
void tk_arena_destroy(tk_arena *);

// In the child, before an execution: every buffer and all slack hold the initial contents again (cost: the pages written since).
// Afterwards the child may write to tk_arena_address() itself, e.g. stale contents of scratch buffers; for inputs call
// tk_arena_unlock(arena, buffer) first.
void tk_arena_reset(tk_arena *);
// Until the next reset slack holds NaN, where it otherwise holds numbers: another program may have left either.
void tk_arena_nan_slack(tk_arena *);
void tk_arena_unlock(tk_arena *, uint32_t buffer);

// The last two concern no buffer: `buffer` is then the number of the launch, `offset` a source line.
enum tk_hazard_kind {
  TK_HAZARD_BEFORE = 1,
  TK_HAZARD_AFTER = 2,
  TK_HAZARD_INPUT = 3,
  TK_HAZARD_BARRIERS = 4,
  TK_HAZARD_LANE = 5
};
typedef struct tk_hazard {
  uint32_t kind;     // slack before / after the buffer written, or a read-only input written
  uint32_t buffer;
  int64_t offset;    // first changed byte, from the buffer's start (INPUT: offset of the page of the first write, or 0)
} tk_hazard;
// In the child, after the launches: at most one hazard for each buffer and kind. Returns how many were stored.
uint32_t tk_arena_check(tk_arena *, tk_hazard *out, uint32_t capacity);

// ------------------------------------------------------------------------------------------------ launches
enum tk_schedule_kind { TK_GPU = 0, TK_FORWARD = 1, TK_REVERSE = 2, TK_RANDOM = 3, TK_WARP_GREEDY = 4 };

typedef struct tk_launch_spec {
  const tk_kernel *kernel;
  tk_module *module;
  tk_arena *arena;
  void **args;              // arg_count pointers to values (a pointer argument: pointer to a void*)
  uint32_t grid[3], block[3];
  uint64_t dynamic_shared;  // bytes
  uint32_t cooperative;     // 1: grid synchronisation allowed, all blocks resident
  uint32_t schedule;        // enum tk_schedule_kind
  uint64_t seed;            // for TK_RANDOM (and preemption in checked libraries); same seed, same bits
} tk_launch_spec;

typedef struct tk_launch_counts {
  uint64_t switches;        // between device threads
  uint64_t accesses;        // hooked memory accesses (checked)
  uint64_t preemptions;     // timer preemptions of a spinning thread
  // Hazards of a launch that ended well: a GPU doesn't report them. 0 = none, else a source line. Plain build, TK_GPU schedule: a GPU
  // counts barrier arrivals wherever they come from, so this schedule goes on where the others end with TK_BARRIER_DIVERGENCE.
  uint32_t divergence_line; // threads of one block met at barriers of different lines
  uint32_t lane_line;       // a shuffle read a lane that does not take part
} tk_launch_counts;

// Runs one launch to its end. Returns only when it ended well; every fault ends the child with a report. An invalid launch
// (grid or block of 0 or beyond a GPU's limits, more than 1024 threads, more than 227 KiB of shared memory) is TK_TRAP
// "launch refused: ...". `counts` may be NULL.
void tk_launch(const tk_launch_spec *, tk_launch_counts *counts);

#ifdef __cplusplus
}
#endif
