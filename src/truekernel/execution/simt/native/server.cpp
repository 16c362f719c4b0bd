// The native process that executes kernels for a Python driver (truekernel/execution/simt/server.py).
//
// It reads requests on stdin and answers on stdout. Cases are held in memory: buffers in an arena of the runtime, references in pages
// that are read-only from then on. For each variant of a library it forks a child that runs the wanted executions in order and
// writes one record for each into a pipe. When a child dies, the parent notes why and forks again at the next execution. Nothing that
// a kernel does reaches this process.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime.h"
#include "server_cases.h"
#include "server_child.h"
#include "server_wire.h"

namespace server {
namespace {

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
  uint32_t tag;
  const char *at;
  size_t size;
};

// Whole records at the start of `bytes`, of executions of `tags` in order, though not of all; `report` is what follows them, if it is one.
std::vector<Piece> split_records(const std::vector<char> &bytes, const std::vector<uint32_t> &tags, const tk_report **report) {
  std::vector<Piece> records;
  size_t at = 0;
  auto next = tags.begin();
  while (bytes.size() - at >= sizeof(RecordHead)) {
    RecordHead head;
    std::memcpy(&head, bytes.data() + at, sizeof head);
    if (head.magic != kRecordMagic || head.size < sizeof head + head.statistics * sizeof(double) || head.size > bytes.size() - at) break;
    next = std::find(next, tags.end(), head.tag);
    if (next++ == tags.end()) break;
    records.push_back({head.tag, bytes.data() + at, size_t(head.size)});
    at += head.size;
  }
  *report = nullptr;
  if (bytes.size() - at >= sizeof(tk_report)) {
    const auto *found = reinterpret_cast<const tk_report *>(bytes.data() + at);
    if (found->magic == TK_REPORT_MAGIC && found->size == sizeof(tk_report)) *report = found;
  }
  return records;
}

bool noticed_by_a_gpu(uint32_t status) {
  return status != TK_HOST_DIFFERS && status != TK_RACE && status != TK_UNINITIALISED_READ && status != TK_INFRASTRUCTURE;
}

// Runs one variant on all executions of a request. A child runs one after the other; where it dies, the next child goes on behind.
class VariantRun {
 public:
  VariantRun(const Request &request, uint32_t index, int32_t variant, uint32_t member)
      : request_(request), index_(index), variant_(variant), member_(member), settled_(request.executions.size()) {}

  bool run() {
    for (;;) {
      std::vector<uint32_t> left;
      for (uint32_t k = 0; k < settled_.size(); k++) {
        if (settled_[k]) continue;
        if (over(request_.executions[k], ended_)) {
          answer(FRAME_SKIPPED, index_, k, nullptr, 0);
          settled_[k] = true;
        } else {
          left.push_back(k);
        }
      }
      if (left.empty()) return true;
      if (!fork_for(left, false)) return false;
    }
  }

 private:
  // Whether a record ends the series that its execution belongs to.
  bool exceeds(const Piece &record) const {
    RecordHead head;
    std::memcpy(&head, record.at, sizeof head);
    std::vector<double> statistics(head.statistics);
    if (head.statistics) std::memcpy(statistics.data(), record.at + sizeof head, head.statistics * sizeof(double));
    return ends_series(request_.executions[record.tag], statistics.data(), head.statistics);
  }

  // Runs executions in one child and settles all that ended, a dead one included.
  bool fork_for(const std::vector<uint32_t> &tags, bool repeated) {
    int ends[2];
    if (pipe(ends)) return false;
    double limit = 60;
    for (uint32_t k : tags) limit += 20 * request_.executions[k].cpu_seconds;
    flush();
    const pid_t pid = fork();
    if (pid < 0) {
      close(ends[0]);
      close(ends[1]);
      return false;
    }
    if (pid == 0) {
      close(ends[0]);
      child(request_, tags, variant_, member_, ends[1]);
    }
    close(ends[1]);
    const Death death = watch(pid, ends[0], limit);
    const tk_report *report;
    const std::vector<Piece> records = split_records(death.bytes, tags, &report);
    for (const Piece &record : records) {
      answer(FRAME_RECORD, index_, record.tag, record.at, record.size);
      settled_[record.tag] = true;
      if (exceeds(record)) ended_ |= request_.executions[record.tag].series;
    }
    const bool healthy = WIFEXITED(death.status) && WEXITSTATUS(death.status) == TK_EXIT_DONE;
    const auto behind = records.empty() ? tags.begin() : std::find(tags.begin(), tags.end(), records.back().tag) + 1;
    const auto next = std::find_if(behind, tags.end(), [&](uint32_t k) { return !over(request_.executions[k], ended_); });
    if (next == tags.end() && healthy) return true;
    // A child that died after its last record: that execution is not to be trusted.
    const uint32_t dead = next != tags.end() ? *next : records.empty() ? tags.back() : records.back().tag;
    const bool timeout = death.overdue || (report && report->status == TK_TIMEOUT);
    if (timeout && !repeated) return fork_for({dead}, true);  // once more, alone, before it counts
    if (report) {
      answer(FRAME_REPORT, index_, dead, report, sizeof *report);
    } else {
      const int32_t note[2] = {death.overdue ? 1 : 0, death.status};
      answer(FRAME_DEATH, index_, dead, note, sizeof note);
    }
    settled_[dead] = true;
    if (!report || noticed_by_a_gpu(report->status)) ended_ |= request_.executions[dead].series;
    return true;
  }

  const Request &request_;
  const uint32_t index_;
  const int32_t variant_;
  const uint32_t member_;
  std::vector<bool> settled_;
  uint64_t ended_ = 0;
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
    wanted.fill = take<uint32_t>();
    wanted.seed = take<uint64_t>();
    wanted.cpu_seconds = take<double>();
    wanted.series = take<uint64_t>();
    wanted.ceiling = take<double>();
    wanted.nonfinite = take<uint32_t>();
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
}  // namespace server

int main() {
  using namespace server;
  signal(SIGPIPE, SIG_IGN);
  rlimit files;  // up to three stay open for each case
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
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
