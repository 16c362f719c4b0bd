// Atomic operations and fences as far as they are the scheduler's business.
#include "fault.h"
#include "scheduler.h"

using namespace tk;

// An atomic that changes nothing is likely a poll. After that many in a row somebody else must run, or the poll never ends.
static const unsigned kPolls = 32;
static unsigned polls;
static const volatile void *polled;

extern "C" void tk_atomic_begin(const volatile void *address, unsigned int size, int line) {
  no_preemption = 1;
  const auto a = reinterpret_cast<uint64_t>(address);
  if (a & (size - 1)) {
    Place place;
    place.line = line;
    place.address = a;
    place.size = size;
    place.write = true;
    fail(TK_MISALIGNED, place, "atomic operation of %u bytes at an address that is no multiple of %u", size, size);
  }
  if (checking) check_atomic(address, size, line);
}

extern "C" void tk_atomic_end(const volatile void *address, int changed) {
  no_preemption = 0;
  if (checking) check_atomic_end(address, changed);
  if (changed) {
    polls = 0;
    block->idle_yields = 0;
    return;
  }
  if (polled != address) {
    polled = address;
    polls = 0;
  }
  if (++polls < kPolls) return;
  polls = 0;
  yield_current();
}

extern "C" void tk_fence(int scope) {
  if (!checking) return;
  check_settled();
  check_fence(scope);
}
