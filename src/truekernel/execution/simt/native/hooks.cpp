// What -fsanitize=thread makes a checked library call for every memory access. Only the instrumentation is used, never its runtime.
#include <string.h>

#include "checker.h"

using namespace tk;

#define HOOK extern "C" __attribute__((visibility("default")))
#define FROM (reinterpret_cast<uint64_t>(__builtin_return_address(0)) - 1)

// A thread that reads the same volatile variable again and again, and nothing else, waits for another thread.
static uint64_t polled, polls;
static const uint64_t kPolls = 32;

static inline void plain(const void *address, unsigned size, bool write, uint64_t from) {
  polls = 0;
  check_access(reinterpret_cast<uint64_t>(address), size, write ? Access::write : Access::read, from);
}

static void strong(const void *address, unsigned size, bool write, uint64_t from) {
  const auto a = reinterpret_cast<uint64_t>(address);
  check_access(a, size, write ? Access::volatile_write : Access::volatile_read, from);
  if (!in_launch || !block) return;
  if (write) {
    release_to(address);
    polls = 0;
    return;
  }
  acquire_from(address);
  if (polled != a) polls = 0;
  polled = a;
  if (++polls < kPolls) return;
  polls = 0;
  yield_current();
  acquire_from(address);
}

#define HOOKS(prefix, n)                                                                              \
  HOOK void __tsan_##prefix##read##n(void *p) { plain(p, n, false, FROM); }                           \
  HOOK void __tsan_##prefix##write##n(void *p) { plain(p, n, true, FROM); }                           \
  HOOK void __tsan_##prefix##volatile_read##n(void *p) { strong(p, n, false, FROM); }                 \
  HOOK void __tsan_##prefix##volatile_write##n(void *p) { strong(p, n, true, FROM); }                 \
  HOOK void __tsan_##prefix##read_write##n(void *p) {                                                 \
    plain(p, n, false, FROM);                                                                         \
    plain(p, n, true, FROM);                                                                          \
  }
HOOKS(, 1)
HOOKS(, 2)
HOOKS(, 4)
HOOKS(, 8)
HOOKS(, 16)
HOOKS(unaligned_, 2)
HOOKS(unaligned_, 4)
HOOKS(unaligned_, 8)
HOOKS(unaligned_, 16)

HOOK void __tsan_read_range(void *p, unsigned long n) {
  if (n) plain(p, unsigned(n), false, FROM);
}
HOOK void __tsan_write_range(void *p, unsigned long n) {
  if (n) plain(p, unsigned(n), true, FROM);
}
HOOK void *__tsan_memcpy(void *to, const void *from, size_t n) {
  if (n) {
    plain(from, unsigned(n), false, FROM);
    plain(to, unsigned(n), true, FROM);
  }
  return memcpy(to, from, n);
}
HOOK void *__tsan_memmove(void *to, const void *from, size_t n) {
  if (n) {
    plain(from, unsigned(n), false, FROM);
    plain(to, unsigned(n), true, FROM);
  }
  return memmove(to, from, n);
}
HOOK void *__tsan_memset(void *to, int value, size_t n) {
  if (n) plain(to, unsigned(n), true, FROM);
  return memset(to, value, n);
}
HOOK void __tsan_init() {}
HOOK void __tsan_func_entry(void *) {}
HOOK void __tsan_func_exit() {}
HOOK void __tsan_vptr_read(void **) {}
HOOK void __tsan_vptr_update(void **, void *) {}
