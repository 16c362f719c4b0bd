// The native process that executes kernels for a Python driver (truekernel/execution/simt/server.py).
//
// It reads requests on stdin and answers on stdout, both little-endian (see `wire.py` for the layout). Cases are held in
// memory: buffers in an arena of the runtime, references in pages that are read-only from then on. For each variant of a library
// it forks a child that runs the wanted executions in order and writes one record for each into a pipe. When a child
// dies, the parent notes why and forks again at the next execution. Nothing that a kernel does reaches this process.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime.h"
#include "statistics.h"

namespace {

constexpr uint32_t kFrameMagic = 0x31464b54u;   // "TKF1"
constexpr uint32_t kRecordMagic = 0x31584b54u;  // "TKX1"
enum FrameType : uint32_t { FRAME_RECORD = 1, FRAME_REPORT = 2, FRAME_DEATH = 3, FRAME_SKIPPED = 4, FRAME_DONE = 5, FRAME_ERROR = 6 };
enum RunFlags : uint32_t { KEEP_OUTPUTS = 1, STOP_AFTER_TIMEOUT = 2, STOP_AT_FIRST_BAD = 4, ALLOW_SYSTEM_CALLS = 8 };
enum ArgKind : uint32_t { ARG_POINTER = 0, ARG_SCALAR = 1 };

// ------------------------------------------------------------------------------------------------ wire

[[noreturn]] void leave() { _exit(0); }

void read_exact(void *to, size_t n) {
  auto *p = static_cast<char *>(to);
  while (n) {
    const ssize_t got = read(STDIN_FILENO, p, n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) leave();  // the driver is gone
    p += got;
    n -= size_t(got);
  }
}

template <class T>
T take() {
  T value;
  read_exact(&value, sizeof value);
  return value;
}

std::string take_string() {
  std::string text(take<uint32_t>(), '\0');
  read_exact(text.data(), text.size());
  return text;
}

std::vector<char> pending;  // answers not yet written

void flush() {
  const char *p = pending.data();
  size_t n = pending.size();
  while (n) {
    const ssize_t put = write(STDOUT_FILENO, p, n);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) leave();
    p += put;
    n -= size_t(put);
  }
  pending.clear();
}

struct FrameHead {
  uint32_t magic, type, variant, execution;
  uint64_t size;
};

void answer(FrameType type, uint32_t variant, uint32_t execution, const void *bytes, size_t n) {
  const FrameHead head{kFrameMagic, type, variant, execution, n};
  const auto *h = reinterpret_cast<const char *>(&head);
  pending.insert(pending.end(), h, h + sizeof head);
  const auto *b = static_cast<const char *>(bytes);
  if (n) pending.insert(pending.end(), b, b + n);
  if (pending.size() > (1u << 16)) flush();
}

void done() {
  answer(FRAME_DONE, 0, 0, nullptr, 0);
  flush();
}

void fail(const std::string &why) {
  answer(FRAME_ERROR, 0, 0, why.data(), why.size());
  flush();
}

// ------------------------------------------------------------------------------------------------ cases

// Memory that is filled once and read-only from then on, here and in every child.
class Frozen {
 public:
  Frozen() = default;
  Frozen(const Frozen &) = delete;
  Frozen &operator=(const Frozen &) = delete;
  ~Frozen() { clear(); }

  char *reserve(size_t n) {
    clear();
    size_ = (n + 4095) & ~size_t(4095);
    if (!size_) return nullptr;
    void *p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = p == MAP_FAILED ? nullptr : static_cast<char *>(p);
    if (!data_) size_ = 0;
    return data_;
  }
  void freeze() {
    if (data_) mprotect(data_, size_, PROT_READ);
  }
  const char *data() const { return data_; }

 private:
  void clear() {
    if (data_) munmap(data_, size_);
    data_ = nullptr;
    size_ = 0;
  }
  char *data_ = nullptr;
  size_t size_ = 0;
};

struct Arg {
  uint32_t kind, buffer;
  int64_t offset;
  uint64_t bits;
  uint32_t size;
};

struct PlannedLaunch {
  std::string kernel;
  uint32_t grid[3], block[3];
  uint64_t shared;
  uint32_t cooperative;
  std::vector<Arg> args;
};

struct Output {
  uint32_t buffer;
  uint64_t nbytes;
  tk_output compared;  // pointers into `references`; `output` is set in the child
};

struct Stale {
  uint32_t buffer;
  size_t at;
  uint64_t nbytes;
};

struct Case {
  tk_arena *arena = nullptr;
  std::vector<PlannedLaunch> launches;
  std::vector<Output> outputs;
  std::vector<Stale> stale;
  Frozen references, stale_bytes;
  bool compares = false;
  ~Case() {
    if (arena) tk_arena_destroy(arena);
  }
};

std::map<uint32_t, Case> cases;

void take_launches(Case &c) {
  c.launches.resize(take<uint32_t>());
  for (auto &launch : c.launches) {
    launch.kernel = take_string();
    read_exact(launch.grid, sizeof launch.grid);
    read_exact(launch.block, sizeof launch.block);
    launch.shared = take<uint64_t>();
    launch.cooperative = take<uint32_t>();
    launch.args.resize(take<uint32_t>());
    for (auto &arg : launch.args) {
      arg.kind = take<uint32_t>();
      arg.buffer = take<uint32_t>();
      arg.offset = take<int64_t>();
      arg.bits = take<uint64_t>();
      arg.size = take<uint32_t>();
    }
  }
}

// References of all outputs, each array padded to 64 bytes, in the order published, truth, scale, spread, ties.
void take_outputs(Case &c) {
  c.outputs.resize(take<uint32_t>());
  c.compares = take<uint32_t>() != 0;
  struct Sizes {
    uint64_t published, values, spread, ties;
  };
  std::vector<Sizes> sizes;
  size_t total = 0;
  for (auto &output : c.outputs) {
    output.buffer = take<uint32_t>();
    output.nbytes = take<uint64_t>();
    output.compared = tk_output{};
    output.compared.dtype = take<int32_t>();
    output.compared.kind = take<int32_t>();
    output.compared.elements = take<int64_t>();
    output.compared.ties_length = take<int64_t>();
    const bool spread = take<uint32_t>() != 0;
    const uint64_t n = uint64_t(output.compared.elements) * 8;
    if (!c.compares) continue;
    sizes.push_back({output.nbytes, n, spread ? n : 0, n * uint64_t(output.compared.ties_length)});
    for (uint64_t part : {sizes.back().published, n, n, sizes.back().spread, sizes.back().ties}) total += (part + 63) & ~63ull;
  }
  if (!c.compares) return;
  char *p = c.references.reserve(total);
  const auto next = [&](uint64_t n) {
    char *at = n ? p : nullptr;
    if (n) read_exact(at, n);
    p += (n + 63) & ~63ull;
    return at;
  };
  for (size_t k = 0; k < c.outputs.size(); k++) {
    auto &compared = c.outputs[k].compared;
    compared.published = next(sizes[k].published);
    compared.truth = reinterpret_cast<double *>(next(sizes[k].values));
    compared.scale = reinterpret_cast<double *>(next(sizes[k].values));
    compared.spread = reinterpret_cast<double *>(next(sizes[k].spread));
    compared.ties = reinterpret_cast<double *>(next(sizes[k].ties));
  }
  c.references.freeze();
}

void take_stale(Case &c) {
  c.stale.resize(take<uint32_t>());
  size_t total = 0;
  for (auto &stale : c.stale) {
    stale.buffer = take<uint32_t>();
    stale.nbytes = take<uint64_t>();
    stale.at = total;
    total += (stale.nbytes + 63) & ~63ull;
  }
  char *base = c.stale_bytes.reserve(total);
  for (auto &stale : c.stale) read_exact(base + stale.at, stale.nbytes);
  c.stale_bytes.freeze();
}

void define_case() {
  const auto key = take<uint32_t>();
  cases.erase(key);
  Case &c = cases[key];
  std::vector<tk_buffer_spec> specs(take<uint32_t>());
  for (auto &spec : specs) {
    spec.nbytes = take<uint64_t>();
    spec.role = take<uint32_t>();
    spec.reserved = 0;
  }
  c.arena = tk_arena_create(specs.data(), uint32_t(specs.size()));
  std::vector<char> unused;
  for (size_t b = 0; b < specs.size(); b++) {
    if ((specs[b].role & 15) != TK_INPUT) continue;
    if (c.arena) {
      read_exact(tk_arena_pristine(c.arena, uint32_t(b)), specs[b].nbytes);
    } else {
      unused.resize(specs[b].nbytes);
      read_exact(unused.data(), unused.size());
    }
  }
  take_launches(c);
  take_outputs(c);
  take_stale(c);
  if (!c.arena) {
    const std::string why = std::strerror(errno);
    cases.erase(key);
    return fail("no memory for the buffers of a case: " + why);
  }
  done();
}

// ------------------------------------------------------------------------------------------------ libraries

struct Library {
  tk_module *module = nullptr;
  std::vector<std::string> kernels;
};

std::map<uint32_t, Library> libraries;

void open_library() {
  const auto id = take<uint32_t>();
  const std::string path = take_string();
  Library library;
  library.kernels.resize(take<uint32_t>());
  for (auto &kernel : library.kernels) kernel = take_string();
  char error[512] = "";
  library.module = tk_module_open(path.c_str(), error, sizeof error);
  if (!library.module) return fail(error);
  libraries[id] = library;
  done();
}

void close_library() {
  const auto found = libraries.find(take<uint32_t>());
  if (found != libraries.end()) {
    tk_module_close(found->second.module);
    libraries.erase(found);
  }
  done();
}

// ------------------------------------------------------------------------------------------------ executions, in the child

struct Wanted {
  uint32_t key, schedule, stale;
  uint64_t seed;
  double cpu_seconds;
};

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

uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  return x;
}

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
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

[[noreturn]] void refuse(uint32_t tag, uint32_t launch, const std::string &why) {
  tk_report report{};
  report.magic = TK_REPORT_MAGIC;
  report.size = sizeof report;
  report.status = TK_TRAP;
  report.tag = tag;
  report.launch = launch;
  report.buffer = -1;
  std::snprintf(report.message, sizeof report.message, "launch refused: %s", why.c_str());
  tk_deliver(&report, sizeof report);
  _exit(TK_EXIT_REPORTED);
}

const tk_kernel *find_kernel(const Library &library, uint32_t member, const std::string &name) {
  for (size_t k = 0; k < library.kernels.size(); k++) {
    if (library.kernels[k] != name) continue;
    const std::string symbol = "tk_entry_" + std::to_string(member) + "_" + std::to_string(k);
    return tk_module_kernel(library.module, symbol.c_str());
  }
  return nullptr;
}

void launch_all(const Request &request, const Wanted &wanted, Case &c, uint32_t member, uint32_t tag) {
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
    tk_launch(&spec, nullptr);
  }
}

void execute(const Request &request, uint32_t tag, uint32_t member) {
  const Wanted &wanted = request.executions[tag];
  Case &c = cases.find(wanted.key)->second;
  tk_arena_reset(c.arena);
  tk_module_reset(request.library->module);
  if (wanted.stale) {
    for (const Stale &stale : c.stale) {
      std::memcpy(tk_arena_address(c.arena, stale.buffer), c.stale_bytes.data() + stale.at, stale.nbytes);
    }
  }
  tk_begin_execution(tag, wanted.cpu_seconds);
  launch_all(request, wanted, c, member, tag);
  RecordHead head{kRecordMagic, tag, 0, 0, sizeof head, 0x51ed270b, 0};
  head.seconds = tk_end_execution();

  tk_hazard hazards[64];
  head.hazards = tk_arena_check(c.arena, hazards, 64);
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
                  !wanted.stale, statistics.data());
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
  std::memcpy(p, hazards, head.hazards * sizeof(tk_hazard));
  tk_deliver(record.data(), record.size());
  if (keep) {
    for (const Output &output : c.outputs) tk_deliver(tk_arena_address(c.arena, output.buffer), output.nbytes);
  }
}

[[noreturn]] void child(const Request &request, uint32_t first, uint32_t last, int32_t variant, uint32_t member, int pipe_end) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  const tk_child_options options{pipe_end, request.flags & ALLOW_SYSTEM_CALLS ? 1 : 0};
  tk_begin_child(&options);
  tk_set_variant(variant);
  for (uint32_t tag = first; tag < last; tag++) execute(request, tag, member);
  tk_child_exit();
}

// ------------------------------------------------------------------------------------------------ executions, in the parent

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

struct Death {
  bool overdue = false;
  int status = 0;
  std::vector<char> bytes;
};

// Reads a child's pipe until the child is gone, and reaps it. A child that neither computes nor ends is killed in the end.
Death watch(pid_t pid, int pipe_end, double wall_limit) {
  Death death;
  const int pid_fd = int(syscall(SYS_pidfd_open, pid, 0));
  const double deadline = now() + wall_limit;
  bool open = true, alive = true;
  char chunk[1 << 16];
  while (open) {
    pollfd waiting[3] = {{pipe_end, POLLIN, 0}, {alive ? pid_fd : -1, POLLIN, 0}, {STDIN_FILENO, 0, 0}};
    const int ready = poll(waiting, 3, alive ? 1000 : 0);
    if (ready < 0 && errno == EINTR) continue;
    if (waiting[2].revents & (POLLHUP | POLLERR)) {  // the driver is gone
      kill(pid, SIGKILL);
      leave();
    }
    if (waiting[0].revents) {
      const ssize_t got = read(pipe_end, chunk, sizeof chunk);
      if (got > 0) death.bytes.insert(death.bytes.end(), chunk, chunk + got);
      else if (got == 0) open = false;
      continue;
    }
    if (!alive) break;  // ended and drained, though something else may still hold the pipe
    if (waiting[1].revents) alive = false;
    if (now() > deadline) {
      death.overdue = true;
      kill(pid, SIGKILL);
      break;
    }
  }
  if (pid_fd >= 0) close(pid_fd);
  close(pipe_end);
  while (waitpid(pid, &death.status, 0) < 0 && errno == EINTR) continue;
  kill(-pid, SIGKILL);  // whatever the child may have left behind in its group
  return death;
}

struct Piece {
  const char *at;
  size_t size;
};

// Whole records at the start of `bytes`, one for each execution from `first` on; `report` is what follows them, if it is one.
uint32_t split_records(const std::vector<char> &bytes, uint32_t first, uint32_t last, std::vector<Piece> &records, const tk_report **report) {
  size_t at = 0;
  uint32_t tag = first;
  while (tag < last && bytes.size() - at >= sizeof(RecordHead)) {
    RecordHead head;
    std::memcpy(&head, bytes.data() + at, sizeof head);
    if (head.magic != kRecordMagic || head.tag != tag || head.size < sizeof head || head.size > bytes.size() - at) break;
    records.push_back({bytes.data() + at, size_t(head.size)});
    at += head.size;
    tag++;
  }
  *report = nullptr;
  if (bytes.size() - at >= sizeof(tk_report)) {
    const auto *found = reinterpret_cast<const tk_report *>(bytes.data() + at);
    if (found->magic == TK_REPORT_MAGIC && found->size == sizeof(tk_report)) *report = found;
  }
  return tag;
}

class VariantRun {
 public:
  VariantRun(const Request &request, uint32_t index, int32_t variant, uint32_t member)
      : request_(request), index_(index), variant_(variant), member_(member) {}

  bool run() {
    const auto total = uint32_t(request_.executions.size());
    uint32_t next = 0;
    while (next < total) {
      const uint32_t before = next;
      if (!fork_from(next, total, false)) return false;
      if (next < total && stopped_) {
        for (; next < total; next++) answer(FRAME_SKIPPED, index_, next, nullptr, 0);
      }
      if (next == before) return false;
    }
    return true;
  }

 private:
  // Runs executions [next, last) in one child and answers for all that ended, dead ones included; moves `next` on.
  bool fork_from(uint32_t &next, uint32_t last, bool repeated) {
    int ends[2];
    if (pipe(ends)) return false;
    double limit = 60;
    for (uint32_t k = next; k < last; k++) limit += 20 * request_.executions[k].cpu_seconds;
    flush();
    const pid_t pid = fork();
    if (pid < 0) {
      close(ends[0]);
      close(ends[1]);
      return false;
    }
    if (pid == 0) {
      close(ends[0]);
      child(request_, next, last, variant_, member_, ends[1]);
    }
    close(ends[1]);
    const Death death = watch(pid, ends[0], limit);
    std::vector<Piece> records;
    const tk_report *report;
    next = split_records(death.bytes, next, last, records, &report);
    for (size_t k = 0; k < records.size(); k++) {
      answer(FRAME_RECORD, index_, uint32_t(next - records.size() + k), records[k].at, records[k].size);
    }
    const bool healthy = WIFEXITED(death.status) && WEXITSTATUS(death.status) == TK_EXIT_DONE;
    if (next == last && healthy) return true;
    if (next == last) next = last - 1;  // died after its last record: that execution is not to be trusted
    const bool timeout = death.overdue || (report && report->status == TK_TIMEOUT);
    if (timeout && !repeated) {  // once more, alone, before it counts
      uint32_t again = next;
      return fork_from(again, next + 1, true) && (next = again, true);
    }
    if (report) {
      answer(FRAME_REPORT, index_, next, report, sizeof *report);
    } else {
      const int32_t note[2] = {death.overdue ? 1 : 0, death.status};
      answer(FRAME_DEATH, index_, next, note, sizeof note);
    }
    stopped_ = (request_.flags & STOP_AT_FIRST_BAD) || (timeout && (request_.flags & STOP_AFTER_TIMEOUT));
    next++;
    return true;
  }

  const Request &request_;
  const uint32_t index_;
  const int32_t variant_;
  const uint32_t member_;
  bool stopped_ = false;
};

void run_variants() {
  Request request;
  const auto library = take<uint32_t>();
  request.flags = take<uint32_t>();
  request.executions.resize(take<uint32_t>());
  bool known = true;
  for (auto &wanted : request.executions) {
    wanted.key = take<uint32_t>();
    wanted.schedule = take<uint32_t>();
    wanted.stale = take<uint32_t>();
    wanted.seed = take<uint64_t>();
    wanted.cpu_seconds = take<double>();
    known = known && cases.count(wanted.key);
  }
  request.tolerances.resize(take<uint32_t>());
  for (auto &tolerance : request.tolerances) tolerance = {take<double>(), take<double>()};
  request.rhos.resize(take<uint32_t>());
  for (auto &rho : request.rhos) rho = take<double>();
  struct Chosen {
    int32_t variant;
    uint32_t member;
  };
  std::vector<Chosen> variants(take<uint32_t>());
  for (auto &chosen : variants) chosen = {take<int32_t>(), take<uint32_t>()};

  const auto found = libraries.find(library);
  if (found == libraries.end() || !known) return fail("unknown library or case");
  request.library = &found->second;
  for (uint32_t index = 0; index < variants.size(); index++) {
    if (!VariantRun(request, index, variants[index].variant, variants[index].member).run()) {
      return fail(std::string("a child could not be started: ") + std::strerror(errno));
    }
  }
  done();
}

}  // namespace

int main() {
  signal(SIGPIPE, SIG_IGN);
  if (tk_initialise()) {
    fail(std::string("the runtime could not reserve memory: ") + std::strerror(errno));
    return 1;
  }
  done();  // ready
  for (;;) {
    switch (take<uint32_t>()) {
      case 'D': define_case(); break;
      case 'F': cases.erase(take<uint32_t>()); done(); break;
      case 'L': open_library(); break;
      case 'C': close_library(); break;
      case 'R': run_variants(); break;
      default: fail("unknown request"); return 1;
    }
  }
}
