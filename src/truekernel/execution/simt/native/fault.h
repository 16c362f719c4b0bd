// Limits of the running execution and the ways to end a child.
#pragma once
#include "internal.h"

namespace tk {

// What device code must not be able to change: on a page of its own, read-only once it is filled.
struct Settings {
  int report_fd;
};
extern Settings *settings;

struct Limits {
  uint32_t tag;
  bool running;         // between tk_begin_execution and tk_end_execution
  double started;       // CPU seconds
  double cpu_seconds;
};
extern Limits limits;

// clang's numbers of the checks that the builds use.
enum { kTrapDivision = 3, kTrapFloatCast = 5, kTrapShift = 20, kTrapAlignment = 22 };

[[noreturn]] void fail_out_of_bounds(const Place &place);
void calm_tick();

}  // namespace tk
