// Preloaded into a compiler, this makes it a server: the process stops right before the compiler's main(), when all its libraries
// are loaded and bound, and forks a child for each request. That saves the start-up, which is half of the time of a small compile.
// A third of what is left goes into page faults, since a child maps the compiler's code anew: a server with work to do moves it to
// huge pages, which children inherit mapped.
//
// Request on stdin: u32 argc, u32 bytes, then `bytes` of NUL-terminated strings: the file that takes the child's output, then argv.
// Answer on stdout: i32 wait status. Ends when stdin does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*main_function)(int, char **, char **);
static main_function compiler_main;

static int read_exact(void *to, size_t n) {
  char *p = to;
  while (n) {
    ssize_t got = read(0, p, n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    p += got;
    n -= (size_t)got;
  }
  return 1;
}

static void compile(uint32_t argc, char *strings, char **environment) {
  char **argv = calloc(argc + 1, sizeof *argv);
  char *output = strings;
  strings += strlen(strings) + 1;
  for (uint32_t i = 0; i < argc; i++, strings += strlen(strings) + 1) argv[i] = strings;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct rlimit seconds = {60, 60}, memory = {(rlim_t)8 << 30, (rlim_t)8 << 30};
  setrlimit(RLIMIT_CPU, &seconds);
  setrlimit(RLIMIT_AS, &memory);
  int null = open("/dev/null", O_RDONLY), log = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (null < 0 || log < 0) _exit(126);
  dup2(null, 0);
  dup2(log, 1);
  dup2(log, 2);
  const int status = compiler_main((int)argc, argv, environment);
  fflush(NULL);
  _exit(status);  // destructors would write to a thousand pages first
}

enum { kWarm = 4 };  // requests after which a server is worth its huge pages, which take a tenth of a second and as much memory as the code
static const uintptr_t kHuge = 2u << 20, kLarge = 32u << 20;

// Replace a mapping of code by a copy of itself in huge pages.
static void move_to_huge_pages(char *code, size_t size) {
  const size_t room = size + 2 * kHuge;
  char *reserved = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return;
  // Where huge pages begin in the copy, they begin in its final place too.
  char *copy = reserved + (((uintptr_t)code - (uintptr_t)reserved) & (kHuge - 1));
  if (mprotect(copy, size, PROT_READ | PROT_WRITE) == 0 && madvise(copy, size, MADV_HUGEPAGE) == 0) {
    memcpy(copy, code, size);
    if (mprotect(copy, size, PROT_READ | PROT_EXEC) == 0) mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, code);
  }
  munmap(reserved, (size_t)(copy - reserved));
  munmap(copy + size, (size_t)(reserved + room - copy - size));
}

// All mappings of code that are large. Where the system gives no huge pages, nothing is moved.
static void use_huge_pages(void) {
  char line[512], permissions[5];
  FILE *enabled = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
  const int given = enabled && fgets(line, sizeof line, enabled) && !strstr(line, "[never]");
  if (enabled) fclose(enabled);
  FILE *maps = given ? fopen("/proc/self/maps", "r") : NULL;
  struct {
    char *at;
    size_t size;
  } code[8];
  size_t count = 0;
  while (maps && count < sizeof code / sizeof *code && fgets(line, sizeof line, maps)) {
    unsigned long low, high;
    if (sscanf(line, "%lx-%lx %4s", &low, &high, permissions) != 3 || strcmp(permissions, "r-xp")) continue;
    if (high - low < kLarge) continue;
    code[count].at = (char *)low;
    code[count++].size = high - low;
  }
  if (maps) fclose(maps);
  for (size_t i = 0; i < count; i++) move_to_huge_pages(code[i].at, code[i].size);
}

static int serve(int argc, char **argv, char **environment) {
  (void)argc, (void)argv;
  unsetenv("LD_PRELOAD");
  if (write(1, "TKCS", 4) != 4) _exit(1);
  for (unsigned requests = 0;; requests++) {
    if (requests == kWarm) use_huge_pages();
    uint32_t head[2];
    if (!read_exact(head, sizeof head)) _exit(0);
    char *strings = malloc(head[1] + 1);
    if (!strings || !read_exact(strings, head[1])) _exit(0);
    strings[head[1]] = 0;
    int32_t status = -1;
    pid_t pid = fork();
    if (pid == 0) compile(head[0], strings, environment);
    if (pid > 0) {
      while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    }
    free(strings);
    if (write(1, &status, sizeof status) != sizeof status) _exit(0);
  }
}

typedef int (*start_function)(main_function, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

int __libc_start_main(main_function program, int argc, char **argv, void (*init)(void), void (*fini)(void), void (*rtld_fini)(void), void *stack_end) {
  start_function start = (start_function)dlsym(RTLD_NEXT, "__libc_start_main");
  compiler_main = program;
  return start(serve, argc, argv, init, fini, rtld_fini, stack_end);
}
