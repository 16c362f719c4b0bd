// The shim's assert is a device trap; libc's must not come back.
#include_next <assert.h>
#undef assert
#define assert(condition) ((condition) ? (void)0 : tk_trap("assertion failed: " #condition, __LINE__))
