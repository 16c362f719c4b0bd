// What ends a child early: reports, signals, and the timer that ends or preempts threads that run too long.
#include "fault.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <initializer_list>

#include "module.h"
#include "scheduler.h"

namespace tk {

Settings *settings;
Limits limits;
static long tick_microseconds;
static const long kTick = 2000, kFastTick = 200;  // microseconds
static const double kMostAlone = 0.1;              // seconds that a thread may compute before others get their turn

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

static uint64_t library_offset(uint64_t pc) {
  if (!active_module) return 0;
  const Code &code = module_code(active_module);
  return pc >= code.text_low && pc < code.text_high ? pc - code.base : 0;
}

// The variable's own name within a mangled one: the last <length><identifier>.
static void plain_name(char *out, size_t size, const char *mangled) {
  snprintf(out, size, "%s", mangled);
  if (strncmp(mangled, "_Z", 2) != 0) return;
  const size_t all = strlen(mangled);
  for (size_t i = 2; i < all;) {
    size_t length = 0, at = i;
    while (mangled[at] >= '0' && mangled[at] <= '9') length = length * 10 + size_t(mangled[at++] - '0');
    if (at > i && length && at + length <= all) {
      snprintf(out, size, "%.*s", int(length), mangled + at);
      i = at + length;
    } else {
      i = at > i ? at : i + 1;
    }
  }
}

static void name_place(tk_report *report, uint64_t address) {
  report->address = address;
  report->buffer = -1;
  if (shared_contains(address)) {
    const SharedPlace place = shared_place(address);
    report->buffer = -2;
    report->offset = place.offset;
    if (place.name) plain_name(report->name, sizeof report->name, place.name);
    return;
  }
  uint64_t size;
  int64_t offset;
  if (const char *name = global_name(address, &offset, &size)) {
    report->offset = offset;
    plain_name(report->name, sizeof report->name, name);
    return;
  }
  report->buffer = nearest_buffer(address, &offset, &size);
  if (report->buffer >= 0) report->offset = offset;
}

void fill_report(tk_report *report, tk_status status, const Place &place) {
  memset(report, 0, sizeof *report);
  report->magic = TK_REPORT_MAGIC;
  report->size = sizeof *report;
  report->status = uint32_t(status);
  report->tag = limits.tag;
  report->launch = launch_number;
  report->line = uint32_t(place.line > 0 ? place.line : 0);
  report->buffer = -1;
  report->pc = library_offset(place.pc);
  report->access_size = place.size;
  report->is_write = place.write;
  report->cpu_seconds = cpu_seconds() - limits.started;
  if (in_launch && block) {
    report->has_thread = 1;
    const uint3 &t = thread_indices[current], &b = block->index;
    report->thread[0] = t.x, report->thread[1] = t.y, report->thread[2] = t.z;
    report->block[0] = b.x, report->block[1] = b.y, report->block[2] = b.z;
  }
  if (place.address) name_place(report, place.address);
}

void send_and_exit(tk_report *report) {
  ssize_t done;
  do done = write(settings ? settings->report_fd : 2, report, sizeof *report);
  while (done < 0 && errno == EINTR);
  _exit(TK_EXIT_REPORTED);
}

void fail(tk_status status, const Place &place, const char *format, ...) {
  tk_report report;
  fill_report(&report, status, place);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(report.message, sizeof report.message, format, arguments);
  va_end(arguments);
  send_and_exit(&report);
}

void fail_out_of_bounds(const Place &place) {
  tk_report report;
  fill_report(&report, TK_OUT_OF_BOUNDS, place);
  const char *what = place.write ? "write" : "read";
  char size[32] = "";
  if (place.size) snprintf(size, sizeof size, " of %u bytes", place.size);
  uint64_t bytes = 0;
  int64_t offset = report.offset;
  char object[96];
  if (report.buffer == -2) {
    snprintf(object, sizeof object, "shared memory");
    bytes = shared_place(place.address).size;
  } else if (report.buffer >= 0) {
    nearest_buffer(place.address, &offset, &bytes);
    snprintf(object, sizeof object, "a buffer");
  } else if (report.name[0]) {
    global_name(place.address, &offset, &bytes);
    snprintf(object, sizeof object, "a device variable");
  } else {
    snprintf(report.message, sizeof report.message, "%s%s at %#llx, which is %s", what, size,
             (unsigned long long)place.address, place.address < 65536 ? "null" : "no memory of this kernel");
    send_and_exit(&report);
  }
  if (offset < 0)
    snprintf(report.message, sizeof report.message, "%s%s, %lld bytes before %s of %llu bytes", what, size,
             (long long)-offset, object, (unsigned long long)bytes);
  else
    snprintf(report.message, sizeof report.message, "%s%s at byte %lld of %s of %llu bytes", what, size, (long long)offset,
             object, (unsigned long long)bytes);
  send_and_exit(&report);
}

void set_tick(long microseconds) {
  if (microseconds == tick_microseconds) return;
  tick_microseconds = microseconds;
  itimerval timer{};
  timer.it_value.tv_usec = timer.it_interval.tv_usec = microseconds;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// clang's trap instruction carries the number of the check that fired (llvm/lib/IR: ubsantrap operand, clang's SanitizerHandler).
static bool check_of_trap(const uint8_t *pc, unsigned *check) {
  if (pc[0] != 0x67 || pc[1] != 0x0f || pc[2] != 0xb9) return false;
  *check = pc[4];
  return true;
}

static void on_illegal_instruction(Place place) {
  unsigned check;
  const Code &code = module_code(active_module);
  if (place.pc < code.text_low || place.pc + 5 > code.text_high) fail(TK_CRASH, place, "illegal instruction");
  if (!check_of_trap(reinterpret_cast<const uint8_t *>(place.pc), &check))
    fail(TK_CRASH, place, "code that can't be reached was reached");
  switch (check) {
    case kTrapDivision: fail(TK_HOST_DIFFERS, place, "integer division by zero, or the quotient overflows");
    case kTrapFloatCast: fail(TK_HOST_DIFFERS, place, "floating-point value out of the integer type's range");
    case kTrapShift: fail(TK_HOST_DIFFERS, place, "shift by the type's width or more, or by a negative number");
    case kTrapAlignment: fail(TK_MISALIGNED, place, "misaligned or null address");
    default: fail(TK_CRASH, place, "trap %u", check);
  }
}

static void on_memory_fault(int signal, const siginfo_t *info, const ucontext_t *context) {
  const auto registers = context->uc_mcontext.gregs;
  Place place;
  place.pc = uint64_t(registers[REG_RIP]);
  const auto code = uint64_t(registers[REG_ERR]);
  place.write = code & 2;
  if (signal == SIGBUS) fail(TK_INFRASTRUCTURE, place, "memory could not be provided");
  if (info->si_code == SI_KERNEL || !(context->uc_mcontext.gregs[REG_TRAPNO] == 14)) {
    fail(TK_OUT_OF_BOUNDS, place, "address that no memory can have (or a misaligned vector access)");
  }
  const auto address = reinterpret_cast<uint64_t>(info->si_addr);
  if (code & 16) fail(TK_CRASH, place, "jump to %#llx, which is no code", (unsigned long long)address);
  if (stack_contains(address)) fail(TK_CRASH, place, "stack overflow");
  place.address = address;
  if (!address) place.address = 1;  // a null pointer is an address too
  fail_out_of_bounds(place);
}

static uint64_t last_kernel_pc;  // where a tick last found device code

static bool in_device_code(uint64_t pc) {
  const Code &code = module_code(active_module);
  return pc >= code.text_low && pc < code.text_high;
}

// A thread that has not let others run for a while: does it spin, waiting for one of them?
static void maybe_preempt(ucontext_t *context, double now) {
  static uint64_t last_switches;
  static greg_t last[16];
  static bool seen;
  static double since, last_tick;  // CPU time: a machine that is busy elsewhere must not change the order of threads
  greg_t *registers = context->uc_mcontext.gregs;
  const auto pc = uint64_t(registers[REG_RIP]);
  const bool stayed = counts.switches == last_switches && seen;
  const bool same = stayed && now - last_tick > kFastTick / 2e6 && !memcmp(last, registers, sizeof last);
  memcpy(last, registers, sizeof last);
  last_switches = counts.switches;
  if (!stayed) since = now;
  last_tick = now;
  seen = true;
  if (!in_device_code(pc)) return;
  last_kernel_pc = pc;
  if (no_preemption) return;
  const auto stack = uint64_t(registers[REG_RSP]);
  if (!on_own_stack(stack)) {
    Place place;
    place.pc = pc;
    fail(TK_CRASH, place, "stack overflow");
  }
  // Equal registers at two ticks mean a loop that only polls memory. Anything else may compute and gets much longer, so that
  // the order of threads does not depend on the clock.
  // In checked libraries polls are counted, which does not depend on the clock.
  if (checking) return;
  if (!same && now - since < kMostAlone) return;
  seen = false;
  set_tick(kFastTick);
  auto top = reinterpret_cast<uint64_t *>(stack - 128);
  *--top = pc;
  registers[REG_RSP] = greg_t(top);
  registers[REG_RIP] = greg_t(&tk_preempt_entry);
}

static void on_tick(ucontext_t *context) {
  if (!limits.running) return;
  const double now = cpu_seconds();
  if (now - limits.started > limits.cpu_seconds) {
    Place place;
    place.pc = uint64_t(context->uc_mcontext.gregs[REG_RIP]);
    if (active_module && !in_device_code(place.pc) && last_kernel_pc) place.pc = last_kernel_pc;
    fail(TK_TIMEOUT, place, "more than %.3g s of CPU time", limits.cpu_seconds);
  }
  if (in_launch && block && active_module) maybe_preempt(context, now);
}

static void on_signal(int signal, siginfo_t *info, void *data) {
  auto context = static_cast<ucontext_t *>(data);
  const int saved = errno;
  if (signal == SIGALRM) {
    on_tick(context);
    errno = saved;
    return;
  }
  const bool write_fault = signal == SIGSEGV && context->uc_mcontext.gregs[REG_TRAPNO] == 14 &&
                           (context->uc_mcontext.gregs[REG_ERR] & 2);
  if (write_fault && unlock_on_write(reinterpret_cast<uint64_t>(info->si_addr))) {
    errno = saved;
    return;
  }
  Place place;
  place.pc = uint64_t(context->uc_mcontext.gregs[REG_RIP]);
  if (!limits.running) fail(TK_INFRASTRUCTURE, place, "signal %d outside device code", signal);
  switch (signal) {
    case SIGSEGV:
    case SIGBUS: on_memory_fault(signal, info, context); break;
    case SIGFPE: fail(TK_HOST_DIFFERS, place, "integer division by zero, or the quotient overflows");
    case SIGILL:
      if (active_module) on_illegal_instruction(place);
      break;
    case SIGSYS: {
      const char *name = system_call_name(info->si_syscall);
      if (name) fail(TK_TRAP, place, "system call %s from device code", name);
      fail(TK_TRAP, place, "system call %d from device code", info->si_syscall);
    }
    default: break;
  }
  fail(TK_CRASH, place, "signal %d", signal);
}

void install_signals() {
  const size_t size = 64 * 1024;
  stack_t stack{};
  stack.ss_size = size;
  // Inaccessible memory on both sides: nothing that runs over can reach it, nor can it run over itself.
  char *memory = static_cast<char *>(
      mmap(nullptr, size + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  mprotect(memory + kPage, size, PROT_READ | PROT_WRITE);
  stack.ss_sp = memory + kPage;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  // The timer waits while another signal is handled; a fault within a handler ends the process.
  sigaddset(&action.sa_mask, SIGALRM);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP, SIGALRM}) sigaction(signal, &action, nullptr);
  set_tick(kTick);
}

void calm_tick() { set_tick(kTick); }

}  // namespace tk

using namespace tk;

extern "C" void tk_trap(const char *why, int line) {
  Place place;
  place.line = line;
  fail(TK_TRAP, place, "%s", why);
}

// The stack of a device thread was smashed, or device code gave up: libc's own ways would first write to the terminal.
extern "C" __attribute__((visibility("default"), noreturn)) void __stack_chk_fail() {
  fail(TK_CRASH, {}, "stack smashed");
}
