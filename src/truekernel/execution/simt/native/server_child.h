// What a child of the native server does: the wanted executions of one variant, one record for each.
#pragma once
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <unistd.h>

#include "runtime.h"
#include "server_cases.h"
#include "server_wire.h"
#include "statistics.h"

namespace server {

struct Wanted {
  uint32_t key, schedule, fill;
  uint64_t seed;
  double cpu_seconds;
  uint64_t series;  // bits of the series that it belongs to
  double ceiling;   // an error above it ends them, in error scales
  uint32_t nonfinite;  // whether an element of another NaN/Inf class than the truth's does not
};

// An execution is needed no more when all series that it belongs to have ended.
inline bool over(const Wanted &wanted, uint64_t ended) { return wanted.series && !(wanted.series & ~ended); }

enum { kNonfinite = 1, kWorst = 2 };  // places in what tk_statistics writes

inline bool ends_series(const Wanted &wanted, const double *statistics, uint32_t count) {
  return count > kWorst && (statistics[kWorst] > wanted.ceiling || (statistics[kNonfinite] > 0 && !wanted.nonfinite));
}

struct Request {
  Library *library;
  uint32_t flags;
  std::vector<Wanted> executions;
  std::vector<tk_tolerance> tolerances;
  std::vector<double> rhos;
};

struct RecordHead {
  uint32_t magic, tag, statistics, hazards;
  uint64_t size, hash;
  double seconds;
};

inline uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  return x;
}

inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
  const auto *p = static_cast<const unsigned char *>(bytes);
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  uint64_t last = 0;
  std::memcpy(&last, p, n);
  return mix(hash ^ last ^ (uint64_t(n) << 56));
}

[[noreturn]] inline void end_with(uint32_t status, uint32_t tag, uint32_t launch, const std::string &message) {
  tk_report report{};
  report.magic = TK_REPORT_MAGIC;
  report.size = sizeof report;
  report.status = status;
  report.tag = tag;
  report.launch = launch;
  report.buffer = -1;
  std::snprintf(report.message, sizeof report.message, "%s", message.c_str());
  tk_deliver(&report, sizeof report);
  _exit(TK_EXIT_REPORTED);
}

[[noreturn]] inline void refuse(uint32_t tag, uint32_t launch, const std::string &why) {
  end_with(TK_TRAP, tag, launch, "launch refused: " + why);
}

inline const tk_kernel *find_kernel(const Library &library, uint32_t member, const std::string &name) {
  for (size_t k = 0; k < library.kernels.size(); k++) {
    if (library.kernels[k] != name) continue;
    const std::string symbol = "tk_entry_" + std::to_string(member) + "_" + std::to_string(k);
    return tk_module_kernel(library.module, symbol.c_str());
  }
  return nullptr;
}

inline void launch_all(const Request &request, const Wanted &wanted, Case &c, uint32_t member, uint32_t tag, std::vector<tk_hazard> &hazards) {
  for (uint32_t number = 0; number < c.launches.size(); number++) {
    const PlannedLaunch &planned = c.launches[number];
    const tk_kernel *kernel = find_kernel(*request.library, member, planned.kernel);
    if (!kernel) refuse(tag, number, "the library has no kernel " + planned.kernel);
    if (kernel->arg_count != planned.args.size()) {
      refuse(tag, number, planned.kernel + " takes " + std::to_string(kernel->arg_count) + " arguments");
    }
    std::vector<uint64_t> values(planned.args.size());
    std::vector<void *> args(planned.args.size());
    for (size_t i = 0; i < args.size(); i++) {
      const Arg &arg = planned.args[i];
      const bool pointer = arg.kind == ARG_POINTER;
      if (kernel->arg_sizes[i] != (pointer ? 8 : arg.size)) {
        refuse(tag, number, "argument " + std::to_string(i) + " of " + planned.kernel + " has another size");
      }
      values[i] = pointer ? uint64_t(tk_arena_address(c.arena, arg.buffer)) + uint64_t(arg.offset) : arg.bits;
      args[i] = &values[i];
    }
    tk_launch_spec spec{};
    spec.kernel = kernel;
    spec.module = request.library->module;
    spec.arena = c.arena;
    spec.args = args.data();
    std::memcpy(spec.grid, planned.grid, sizeof spec.grid);
    std::memcpy(spec.block, planned.block, sizeof spec.block);
    spec.dynamic_shared = planned.shared;
    spec.cooperative = planned.cooperative;
    spec.schedule = wanted.schedule;
    spec.seed = wanted.seed;
    tk_launch_counts counts;
    tk_launch(&spec, &counts);
    if (counts.divergence_line) hazards.push_back({TK_HAZARD_BARRIERS, number, int64_t(counts.divergence_line)});
    if (counts.lane_line) hazards.push_back({TK_HAZARD_LANE, number, int64_t(counts.lane_line)});
  }
}

// Returns whether it ends its series.
inline bool execute(const Request &request, uint32_t tag, uint32_t member) {
  const Wanted &wanted = request.executions[tag];
  Case &c = cases.find(wanted.key)->second;
  tk_arena_reset(c.arena);
  tk_module_reset(request.library->module);
  if (!c.references.map() || (wanted.fill == FILL_STALE && !c.stale_bytes.map())) end_with(TK_INFRASTRUCTURE, tag, 0, "no memory for the references of a case");
  if (wanted.fill == FILL_NAN) tk_arena_nan_slack(c.arena);
  if (wanted.fill == FILL_STALE) {
    for (const Stale &stale : c.stale) {
      std::memcpy(tk_arena_address(c.arena, stale.buffer), c.stale_bytes.data() + stale.at, stale.nbytes);
    }
  }
  tk_begin_execution(tag, wanted.cpu_seconds);
  std::vector<tk_hazard> hazards;
  launch_all(request, wanted, c, member, tag, hazards);
  RecordHead head{kRecordMagic, tag, 0, 0, sizeof head, 0x51ed270b, 0};
  head.seconds = tk_end_execution();

  tk_hazard overwritten[64];
  hazards.insert(hazards.end(), overwritten, overwritten + tk_arena_check(c.arena, overwritten, 64));
  head.hazards = uint32_t(hazards.size());
  std::vector<double> statistics;
  std::vector<tk_output> outputs;
  for (const Output &output : c.outputs) {
    outputs.push_back(output.compared);
    outputs.back().output = tk_arena_address(c.arena, output.buffer);
    head.hash = hash_bytes(head.hash, outputs.back().output, output.nbytes);
  }
  if (c.compares) {
    const int tolerances = int(request.tolerances.size()), rhos = int(request.rhos.size());
    statistics.resize(size_t(tk_statistics_count(tolerances, rhos)));
    tk_statistics(outputs.data(), int(outputs.size()), request.tolerances.data(), tolerances, request.rhos.data(), rhos,
                  wanted.fill != FILL_STALE, statistics.data());
  }
  head.statistics = uint32_t(statistics.size());
  const size_t fixed = sizeof head + statistics.size() * sizeof(double) + head.hazards * sizeof(tk_hazard);
  head.size = fixed;
  const bool keep = request.flags & KEEP_OUTPUTS;
  if (keep) {
    for (const Output &output : c.outputs) head.size += output.nbytes;
  }
  std::vector<char> record(fixed);
  char *p = record.data();
  std::memcpy(p, &head, sizeof head);
  p += sizeof head;
  if (!statistics.empty()) std::memcpy(p, statistics.data(), statistics.size() * sizeof(double));
  p += statistics.size() * sizeof(double);
  if (!hazards.empty()) std::memcpy(p, hazards.data(), hazards.size() * sizeof(tk_hazard));
  tk_deliver(record.data(), record.size());
  if (keep) {
    for (const Output &output : c.outputs) tk_deliver(tk_arena_address(c.arena, output.buffer), output.nbytes);
  }
  return ends_series(wanted, statistics.data(), head.statistics);
}

[[noreturn]] inline void child(const Request &request, const std::vector<uint32_t> &tags, int32_t variant, uint32_t member, int pipe_end) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  const tk_child_options options{pipe_end, request.flags & ALLOW_SYSTEM_CALLS ? 1 : 0};
  tk_begin_child(&options);
  tk_set_variant(variant);
  uint64_t ended = 0;
  for (uint32_t tag : tags) {
    const Wanted &wanted = request.executions[tag];
    if (!over(wanted, ended) && execute(request, tag, member)) ended |= wanted.series;
  }
  tk_child_exit();
}

}  // namespace server
