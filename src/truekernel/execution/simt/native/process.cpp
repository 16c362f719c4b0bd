// A child's life: begin, executions, results, end.
#include <errno.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "fault.h"
#include "scheduler.h"

extern "C" {
int tk_variant;
}

using namespace tk;

extern "C" int tk_initialise(void) {
  initialise_fibers();
  initialise_shared();
  settings = static_cast<Settings *>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (settings == MAP_FAILED) return -1;
  settings->report_fd = 2;
  return 0;
}

extern "C" int tk_begin_child(const tk_child_options *options) {
  settings->report_fd = options->report_fd;
  mprotect(settings, kPage, PROT_READ);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  install_signals();
  return !options->allow_system_calls && close_system_calls(options->report_fd);
}

extern "C" void tk_set_variant(int variant) { tk_variant = variant; }

namespace tk {
// With the coprocessor's own switches, which take longer to look at and concern `long double` alone.
void reset_arithmetic() {
  reset_rounding();
  unsigned short word;
  asm volatile("fnstcw %0" : "=m"(word));
  if (word != 0x037F) {
    asm volatile("fninit");
  }
}
}  // namespace tk

extern "C" void tk_begin_execution(uint32_t tag, double seconds) {
  limits.tag = tag;
  limits.cpu_seconds = seconds;
  limits.started = cpu_seconds();
  limits.running = true;
  launch_number = 0;
  reset_arithmetic();
  calm_tick();
}

extern "C" double tk_end_execution(void) {
  limits.running = false;
  reset_arithmetic();
  return cpu_seconds() - limits.started;
}

extern "C" int tk_deliver(const void *bytes, size_t n) {
  auto from = static_cast<const char *>(bytes);
  while (n) {
    const ssize_t done = write(settings->report_fd, from, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return -1;
    from += done;
    n -= size_t(done);
  }
  return 0;
}

extern "C" void tk_child_exit(void) { _exit(TK_EXIT_DONE); }

extern "C" long long tk_clock() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}
