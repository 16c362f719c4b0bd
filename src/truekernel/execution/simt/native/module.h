// What the runtime knows about an opened kernel library.
#pragma once
#include "internal.h"

struct tk_module {
  void *handle;
  char *path;
  tk::Code code;
  uint64_t tls_module, tls_size;     // the library's thread-local storage is its static shared memory
  tk::SharedVariable *shared;
  size_t shared_count;
  tk::SharedVariable *globals;       // __device__ and __constant__ variables, offsets from the load address
  size_t globals_count;
  tk::SharedVariable *functions;     // with mangled names
  size_t functions_count;
  char *initial;                     // contents of the writable segment when it was opened
  size_t initial_size;
};

namespace tk {
// Variable of the active library at or before an address of its writable segment; null elsewhere.
const char *global_name(uint64_t address, int64_t *offset, uint64_t *size);
}  // namespace tk
