// How a library exports a kernel to the host.
#pragma once
#include <stdint.h>

// What TK_EXPORT(symbol, max_threads, kernel) defines in a library.
typedef struct tk_kernel {
  void (*entry)(void **args);   // calls the kernel in the current device thread; args[i] points at the value of argument i
  const void *address;          // of the kernel itself
  const char *name;             // the kernel expression as written
  uint32_t arg_count;
  const uint32_t *arg_sizes;    // bytes
  uint32_t max_threads;         // of a block, as __launch_bounds__ says; 0: it says nothing
  uint32_t checked;             // 1: library built with TK_CHECKED
} tk_kernel;
