// What a child may ask of the kernel of the operating system: next to nothing.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "internal.h"

namespace tk {

namespace {

constexpr uint32_t argument_offset(int i) { return uint32_t(offsetof(struct seccomp_data, args) + 8 * i); }

struct Program {
  sock_filter code[128];
  unsigned short length = 0;

  void add(sock_filter instruction) { code[length++] = instruction; }
  void load(uint32_t offset) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void answer(uint32_t action) { add(BPF_STMT(BPF_RET | BPF_K, action)); }

  void allow(int number) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(number), 0, 1));
    answer(SECCOMP_RET_ALLOW);
  }
  // Only when argument `i` equals one of two values.
  void allow_when(int number, int i, uint32_t first, uint32_t second) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(number), 0, 5));
    load(argument_offset(i));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1));
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_TRAP);
  }
  // Only without any of `bits` in argument `i`.
  void allow_without(int number, int i, uint32_t bits) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(number), 0, 4));
    load(argument_offset(i));
    add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0));
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_TRAP);
  }
};

}  // namespace

bool close_system_calls(int report_fd) {
  Program p;
  p.load(offsetof(struct seccomp_data, arch));
  p.add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
  p.answer(SECCOMP_RET_KILL_PROCESS);
  p.load(offsetof(struct seccomp_data, nr));
  p.allow_when(SYS_write, 0, uint32_t(report_fd), uint32_t(report_fd));
  p.allow_when(SYS_exit_group, 0, TK_EXIT_DONE, TK_EXIT_REPORTED);
  p.allow_without(SYS_mprotect, 2, PROT_EXEC);
  p.allow_without(SYS_mmap, 2, PROT_EXEC);
  for (const int number : {SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_restart_syscall, SYS_setitimer, SYS_clock_gettime,
                           SYS_getrusage, SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk})
    p.allow(number);
  p.answer(SECCOMP_RET_TRAP);
  sock_fprog program{p.length, p.code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

const char *system_call_name(int number) {
  switch (number) {
    case SYS_read: return "read";
    case SYS_write: return "write";
    case SYS_open: case SYS_openat: return "open";
    case SYS_close: return "close";
    case SYS_fork: case SYS_vfork: case SYS_clone: case SYS_clone3: return "fork";
    case SYS_execve: case SYS_execveat: return "execve";
    case SYS_exit: case SYS_exit_group: return "exit";
    case SYS_kill: case SYS_tkill: case SYS_tgkill: return "kill";
    case SYS_socket: return "socket";
    case SYS_unlink: case SYS_unlinkat: return "unlink";
    case SYS_nanosleep: case SYS_clock_nanosleep: return "nanosleep";
    case SYS_futex: return "futex";
    case SYS_mmap: return "mmap";
    case SYS_mprotect: return "mprotect";
    case SYS_rt_sigaction: return "sigaction";
    case SYS_ptrace: return "ptrace";
    default: return nullptr;
  }
}

}  // namespace tk
