// Runs launches on the native runtime without the server: reads a small script from standard input, forks, prints one line of
// JSON and then the bytes of all buffers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "runtime.h"

struct Launch {
  tk_launch_spec spec{};
  std::vector<std::vector<unsigned char>> values;
  std::vector<void *> args;
};

static bool read_all(int fd, void *out, size_t n) {
  auto p = static_cast<char *>(out);
  while (n) {
    const ssize_t got = read(fd, p, n);
    if (got <= 0) return false;
    p += got;
    n -= size_t(got);
  }
  return true;
}

int main() {
  if (tk_initialise() != 0) return 1;
  char word[4096];
  tk_module *module = nullptr;
  std::vector<tk_buffer_spec> buffers;
  std::vector<std::string> contents;
  std::vector<Launch> launches;
  std::vector<std::string> symbols;
  double seconds = 2;
  unsigned schedule = 0, repeat = 1, open_calls = 0;
  unsigned long long seed = 1;
  int variant = 0;
  tk_arena *arena = nullptr;
  while (scanf("%4095s", word) == 1) {
    const std::string key = word;
    if (key == "library") {
      if (scanf("%4095s", word) != 1) return 1;
      char error[512];
      module = tk_module_open(word, error, sizeof error);
      if (!module) {
        fprintf(stderr, "%s\n", error);
        return 1;
      }
    } else if (key == "limit") {
      if (scanf("%lf %u %llu %u %d %u", &seconds, &schedule, &seed, &repeat, &variant, &open_calls) != 6) return 1;
    } else if (key == "buffer") {
      unsigned role;
      unsigned long long n;
      if (scanf("%u %llu %4095s", &role, &n, word) != 3) return 1;
      buffers.push_back({n, role, 0});
      contents.push_back(word);
    } else if (key == "launch") {
      if (!arena) {
        arena = tk_arena_create(buffers.data(), uint32_t(buffers.size()));
        for (size_t i = 0; i < buffers.size(); ++i) {
          if (contents[i] == "-") continue;
          FILE *f = fopen(contents[i].c_str(), "rb");
          if (!f || fread(tk_arena_pristine(arena, uint32_t(i)), 1, buffers[i].nbytes, f) != buffers[i].nbytes) return 1;
          fclose(f);
        }
        if (tk_arena_seal(arena)) return 1;
      }
      launches.emplace_back();
      Launch &l = launches.back();
      unsigned long long shared;
      unsigned count;
      uint32_t *g = l.spec.grid, *b = l.spec.block;
      if (scanf("%4095s %u %u %u %u %u %u %llu %u %u", word, g, g + 1, g + 2, b, b + 1, b + 2, &shared, &l.spec.cooperative,
                &count) != 10)
        return 1;
      symbols.push_back(word);
      l.spec.dynamic_shared = shared;
      for (unsigned i = 0; i < count; ++i) {
        if (scanf("%4095s", word) != 1) return 1;
        std::vector<unsigned char> value;
        if (word[0] == 'b') {
          long long offset = 0;
          char *end;
          const unsigned long buffer = strtoul(word + 1, &end, 10);
          if (*end == '+') offset = atoll(end + 1);
          char *address = static_cast<char *>(tk_arena_address(arena, uint32_t(buffer))) + offset;
          value.resize(8);
          memcpy(value.data(), &address, 8);
        } else {
          for (const char *h = word + 1; *h; h += 2) {
            unsigned byte;
            sscanf(h, "%2x", &byte);
            value.push_back((unsigned char)byte);
          }
        }
        l.values.push_back(value);
      }
    }
  }
  int fds[2];
  if (pipe(fds) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    const tk_child_options options{fds[1], int(open_calls)};
    tk_begin_child(&options);
    tk_set_variant(variant);
    tk_launch_counts counts{}, all{};
    double used = 0;
    for (unsigned r = 0; r < repeat; ++r) {
      tk_arena_reset(arena);
      tk_module_reset(module);
      tk_begin_execution(r, seconds);
      for (size_t i = 0; i < launches.size(); ++i) {
        Launch &l = launches[i];
        l.spec.kernel = tk_module_kernel(module, symbols[i].c_str());
        if (!l.spec.kernel) _exit(TK_EXIT_DONE);
        l.args.clear();
        for (auto &value : l.values) l.args.push_back(value.data());
        l.spec.module = module;
        l.spec.arena = arena;
        l.spec.args = l.args.data();
        l.spec.schedule = schedule;
        l.spec.seed = seed;
        tk_launch(&l.spec, &counts);
        all.switches += counts.switches;
        all.accesses += counts.accesses;
        all.preemptions += counts.preemptions;
        if (counts.divergence_line) all.divergence_line = counts.divergence_line;
        if (counts.lane_line) all.lane_line = counts.lane_line;
      }
      used = tk_end_execution();
    }
    tk_report report{};
    report.magic = TK_REPORT_MAGIC;
    report.cpu_seconds = used;
    tk_hazard hazards[64];
    const uint32_t n = tk_arena_check(arena, hazards, 64);
    tk_deliver(&report, sizeof report);
    tk_deliver(&all, sizeof all);
    tk_deliver(&n, sizeof n);
    tk_deliver(hazards, n * sizeof *hazards);
    for (uint32_t i = 0; i < buffers.size(); ++i) tk_deliver(tk_arena_address(arena, i), buffers[i].nbytes);
    tk_child_exit();
  }
  close(fds[1]);
  tk_report report{};
  if (!read_all(fds[0], &report, sizeof report)) {
    int status;
    waitpid(child, &status, 0);
    printf("{\"status\": -1, \"wait\": %d}\n", status);
    return 0;
  }
  printf(
      "{\"status\": %u, \"line\": %u, \"thread\": [%u, %u, %u], \"block\": [%u, %u, %u], \"has_thread\": %u, \"buffer\": %d, "
      "\"offset\": %lld, \"pc\": %llu, \"other_pc\": %llu, \"write\": %u, \"name\": \"%s\", \"message\": \"%s\", \"seconds\": %g, "
      "\"other_thread\": [%u, %u, %u], \"launch\": %u, \"tag\": %u",
      report.status, report.line, report.thread[0], report.thread[1], report.thread[2], report.block[0], report.block[1],
      report.block[2], report.has_thread, report.buffer, (long long)report.offset, (unsigned long long)report.pc,
      (unsigned long long)report.other_pc, report.is_write, report.name, report.message, report.cpu_seconds,
      report.other_thread[0], report.other_thread[1], report.other_thread[2], report.launch, report.tag);
  if (report.status == TK_OK) {
    tk_launch_counts counts;
    uint32_t n;
    read_all(fds[0], &counts, sizeof counts);
    read_all(fds[0], &n, sizeof n);
    std::vector<tk_hazard> hazards(n);
    read_all(fds[0], hazards.data(), n * sizeof(tk_hazard));
    printf(", \"switches\": %llu, \"accesses\": %llu, \"preemptions\": %llu, \"divergence_line\": %u, \"lane_line\": %u, \"hazards\": [",
           (unsigned long long)counts.switches, (unsigned long long)counts.accesses, (unsigned long long)counts.preemptions,
           counts.divergence_line, counts.lane_line);
    for (uint32_t i = 0; i < n; ++i)
      printf("%s[%u, %u, %lld]", i ? ", " : "", hazards[i].kind, hazards[i].buffer, (long long)hazards[i].offset);
    printf("]}\n");
    for (const auto &buffer : buffers) {
      std::vector<char> bytes(buffer.nbytes + 1);
      read_all(fds[0], bytes.data(), buffer.nbytes);
      fwrite(bytes.data(), 1, buffer.nbytes, stdout);
    }
  } else {
    printf("}\n");
  }
  int status;
  waitpid(child, &status, 0);
  return 0;
}
