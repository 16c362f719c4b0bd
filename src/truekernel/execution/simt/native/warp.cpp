// Warp collectives: lanes wait until all lanes of their mask that still run have come.
#include <string.h>

#include "scheduler.h"

namespace tk {

void begin_warps(Block *b) {
  const unsigned warps = (b->threads + kWarp - 1) / kWarp;
  for (unsigned w = 0; w < warps; ++w) {
    Warp &warp = b->warp[w];
    const unsigned lanes = b->threads - w * kWarp;
    warp.exists = lanes >= kWarp ? ~0u : (1u << lanes) - 1;
    warp.exited = warp.arrived = warp.converging = 0;
    warp.mixed = false;
    warp.gathers = 0;
  }
}

static uint64_t reduce(int kind, const Thread *lane, unsigned lanes) {
  const unsigned first = __builtin_ctz(lanes);
  uint64_t sum = lane[first].value;
  for (unsigned rest = lanes & (lanes - 1); rest; rest &= rest - 1) {
    const uint64_t value = lane[__builtin_ctz(rest)].value;
    switch (kind) {
      case TK_WARP_ADD: sum += value; break;
      case TK_WARP_MIN_SIGNED: sum = int64_t(value) < int64_t(sum) ? value : sum; break;
      case TK_WARP_MAX_SIGNED: sum = int64_t(value) > int64_t(sum) ? value : sum; break;
      case TK_WARP_MIN_UNSIGNED: sum = value < sum ? value : sum; break;
      case TK_WARP_MAX_UNSIGNED: sum = value > sum ? value : sum; break;
      case TK_WARP_AND: sum &= value; break;
      case TK_WARP_OR: sum |= value; break;
      default: sum ^= value; break;
    }
  }
  return sum;
}

static void give_results(Warp &warp, Thread *lane, unsigned lanes, int kind) {
  switch (kind) {
    case TK_WARP_SYNC: return;
    case TK_WARP_SHUFFLE:
      for (unsigned rest = lanes; rest; rest &= rest - 1) {
        Thread &thread = lane[__builtin_ctz(rest)];
        const int source = thread.argument;
        if (unsigned(source) < kWarp && (lanes >> source & 1)) {
          thread.result = lane[source].value;
        } else {
          // A GPU leaves the value undefined; ours is the same every time and NaN as float, half2 or double.
          thread.result = 0x7ff8dead7fffdeadull;
          if (!counts.lane_line) counts.lane_line = uint32_t(thread.line);
        }
      }
      return;
    case TK_WARP_BALLOT: {
      unsigned votes = 0;
      for (unsigned rest = lanes; rest; rest &= rest - 1)
        if (lane[__builtin_ctz(rest)].value) votes |= rest & -rest;
      for (unsigned rest = lanes; rest; rest &= rest - 1) lane[__builtin_ctz(rest)].result = votes;
      return;
    }
    case TK_WARP_MATCH_ANY:
    case TK_WARP_MATCH_ALL:
      for (unsigned rest = lanes; rest; rest &= rest - 1) {
        Thread &thread = lane[__builtin_ctz(rest)];
        unsigned equal = 0;
        for (unsigned others = lanes; others; others &= others - 1)
          if (lane[__builtin_ctz(others)].value == thread.value) equal |= others & -others;
        thread.result = kind == TK_WARP_MATCH_ANY || equal == lanes ? equal : 0;
      }
      return;
    case TK_WARP_GATHER: {
      // Two arrays in turn: a lane may still read the last one while the others fill the next.
      uint64_t *values = warp.gathered[warp.gathers++ & 1];
      for (unsigned rest = lanes; rest; rest &= rest - 1) values[__builtin_ctz(rest)] = lane[__builtin_ctz(rest)].value;
      for (unsigned rest = lanes; rest; rest &= rest - 1)
        lane[__builtin_ctz(rest)].result = reinterpret_cast<uint64_t>(values);
      return;
    }
    default: {
      const uint64_t sum = reduce(kind, lane, lanes);
      for (unsigned rest = lanes; rest; rest &= rest - 1) lane[__builtin_ctz(rest)].result = sum;
    }
  }
}

static void complete(unsigned number, unsigned lanes, int kind) {
  Warp &warp = block->warp[number];
  give_results(warp, block->thread + number * kWarp, lanes, kind);
  if (checking && kind == TK_WARP_SYNC) check_warp_sync(block, number, lanes);
  for (unsigned rest = lanes; rest; rest &= rest - 1) make_ready(number * kWarp + __builtin_ctz(rest));
  warp.arrived &= ~lanes;
  if (!warp.arrived) warp.mixed = false;
  block->idle_yields = 0;
}

// Completes every group of waiting lanes whose mask is satisfied.
static void complete_groups(unsigned number) {
  Warp &warp = block->warp[number];
  const Thread *lane = block->thread + number * kWarp;
  for (unsigned rest = warp.arrived; rest; rest &= rest - 1) {
    const unsigned l = __builtin_ctz(rest);
    if (!(warp.arrived >> l & 1)) continue;
    unsigned group = 0;
    for (unsigned others = warp.arrived; others; others &= others - 1) {
      const Thread &other = lane[__builtin_ctz(others)];
      if (other.mask == lane[l].mask && other.kind == lane[l].kind) group |= others & -others;
    }
    const unsigned needed = lane[l].mask & warp.exists & ~warp.exited;
    if ((group & needed) == needed) complete(number, group, lane[l].kind);
  }
}

void lane_exited(unsigned thread) {
  Warp &warp = block->warp[thread / kWarp];
  warp.exited |= 1u << (thread % kWarp);
  if (warp.arrived) complete_groups(thread / kWarp);
}

bool release_converging() {
  bool any = false;
  for (unsigned number = 0; block->converging && number * kWarp < block->threads; ++number) {
    Warp &warp = block->warp[number];
    if (!warp.converging) continue;
    Thread *lane = block->thread + number * kWarp;
    const int line = lane[__builtin_ctz(warp.converging)].line;
    unsigned group = 0;
    for (unsigned rest = warp.converging; rest; rest &= rest - 1)
      if (lane[__builtin_ctz(rest)].line == line) group |= rest & -rest;
    for (unsigned rest = group; rest; rest &= rest - 1) {
      lane[__builtin_ctz(rest)].result = group;
      make_ready(number * kWarp + __builtin_ctz(rest));
    }
    warp.converging &= ~group;
    block->converging -= unsigned(__builtin_popcount(group));
    any = true;
  }
  return any;
}

}  // namespace tk

using namespace tk;

extern "C" uint64_t tk_warp(int kind, unsigned int mask, uint64_t value, int argument, int line) {
  Block *mine = block;
  const unsigned self = current, number = self / kWarp, bit = 1u << (self % kWarp);
  Warp &warp = mine->warp[number];
  Thread &thread = mine->thread[self];
  if (!(mask & bit)) {
    Place place;
    place.line = line;
    fail(TK_TRAP, place, "lane %u calls a warp collective whose mask %#x does not name it", self % kWarp, mask);
  }
  if (checking) check_settled();
  thread.value = value;
  thread.mask = mask;
  thread.kind = kind;
  thread.argument = argument;
  thread.line = line;
  if (!warp.arrived) {
    warp.mask = mask;
    warp.kind = kind;
  } else if (warp.mask != mask || warp.kind != kind) {
    warp.mixed = true;
  }
  warp.arrived |= bit;
  mine->state[self] = kAtWarp;
  const unsigned position = mine->place[self];
  mine->ready[position >> 6] &= ~(1ull << (position & 63));
  const unsigned needed = mask & warp.exists & ~warp.exited;
  if (warp.mixed)
    complete_groups(number);
  else if ((warp.arrived & needed) == needed)
    complete(number, warp.arrived, kind);
  if (mine->state[self] == kReady)
    after_collective();
  else
    block_thread(kAtWarp);
  return thread.result;
}

// Threads run one after the other, so which lanes are active here shows only when all others have come to rest elsewhere.
extern "C" unsigned int tk_converge(int line) {
  Block *mine = block;
  const unsigned self = current;
  mine->thread[self].line = line;
  mine->warp[self / kWarp].converging |= 1u << (self % kWarp);
  ++mine->converging;
  block_thread(kAtWarp);
  return unsigned(mine->thread[self].result);
}
