// What compiled kernels ask of the runtime. Included by the shim and by the runtime itself.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct uint3 {
  unsigned int x, y, z;
};

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

// Kinds of warp collectives. All lanes of a mask must meet in the same kind.
enum tk_warp_kind {
  TK_WARP_SYNC = 1,
  TK_WARP_SHUFFLE,
  TK_WARP_BALLOT,
  TK_WARP_MATCH_ANY,
  TK_WARP_MATCH_ALL,
  TK_WARP_ADD,
  TK_WARP_MIN_SIGNED,
  TK_WARP_MAX_SIGNED,
  TK_WARP_MIN_UNSIGNED,
  TK_WARP_MAX_UNSIGNED,
  TK_WARP_AND,
  TK_WARP_OR,
  TK_WARP_XOR,
  TK_WARP_GATHER
};

enum tk_barrier_operation { TK_BARRIER_COUNT, TK_BARRIER_AND, TK_BARRIER_OR };
enum tk_fence_scope { TK_FENCE_BLOCK, TK_FENCE_DEVICE };

extern "C" {
// Waits for the whole block; `line`: where in the source.
void tk_barrier(int line);
int tk_barrier_reduce(int line, int operation, int predicate);
// Waits for the lanes of `mask`. SHUFFLE: the value of lane `argument`; BALLOT, MATCH: lane masks; GATHER: the address of an
// array of 32 values, valid until this lane's next collective.
uint64_t tk_warp(int kind, unsigned int mask, uint64_t value, int argument, int line);
unsigned int tk_lane();
// The lanes of the warp that come here together: known when everybody else in the block has come to rest.
unsigned int tk_converge(int line);
unsigned int tk_thread_rank();
void tk_grid_barrier(int line);
// Brackets a read-modify-write: no preemption in between; checks alignment and, in checked libraries, bounds and order.
void tk_atomic_begin(const volatile void *address, unsigned int size, int line);
void tk_atomic_end(const volatile void *address, int changed);
void tk_fence(int scope);
// Lets other threads run (a spin loop's back-off).
void tk_yield();
long long tk_clock();
// An asynchronous copy: done when the thread waits for the batch that it was committed to, at the latest when the thread ends. So
// who forgets to wait reads what was there before. `zeroes`: bytes at the end that are zeroed instead of copied.
void tk_copy_async(void *to, const void *from, size_t bytes, size_t zeroes, int line);
void tk_copy_commit();
void tk_copy_wait(unsigned int newest_left_out);
// The device heap: 8 MB, as CUDA's default; null when it is full.
void *tk_heap_allocate(size_t bytes);
void tk_heap_free(void *);
[[noreturn]] void tk_trap(const char *why, int line);
}
