// What the native server holds: cases (buffers, launches, references, stale contents) and libraries.
#pragma once
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"
#include "server_wire.h"
#include "statistics.h"

namespace server {

inline int reopen_read_only(int file) {
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  return open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

// Memory that is filled once and then read by children that map it: through a read-only descriptor, so that none can make it writable
// again. Here only its addresses are kept.
class Frozen {
 public:
  Frozen() = default;
  Frozen(const Frozen &) = delete;
  Frozen &operator=(const Frozen &) = delete;
  ~Frozen() { clear(); }

  // Memory to fill; null for no bytes, or without memory.
  char *reserve(size_t n) {
    clear();
    size_ = (n + 4095) & ~size_t(4095);
    if (!size_) return nullptr;
    file_ = memfd_create("truekernel-frozen", MFD_CLOEXEC);
    void *p = MAP_FAILED;
    if (file_ >= 0 && ftruncate(file_, off_t(size_)) == 0) p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    data_ = p == MAP_FAILED ? nullptr : static_cast<char *>(p);
    if (!data_) clear();
    return data_;
  }
  // False, with errno, when it can't be done.
  bool freeze() {
    if (!data_) return true;
    const int file = reopen_read_only(file_);
    if (file < 0) return false;
    close(file_);
    file_ = file;
    return mmap(data_, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  // In a child: have the contents at the address that `reserve` gave. False without memory.
  bool map() {
    mapped_ = mapped_ || !data_ || mmap(data_, size_, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file_, 0) != MAP_FAILED;
    return mapped_;
  }
  const char *data() const { return data_; }

 private:
  void clear() {
    if (data_) munmap(data_, size_);
    if (file_ >= 0) close(file_);
    data_ = nullptr;
    size_ = 0;
    file_ = -1;
  }
  char *data_ = nullptr;
  size_t size_ = 0;
  int file_ = -1;
  bool mapped_ = false;
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

inline std::map<uint32_t, Case> cases;

inline void take_launches(Case &c) {
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
inline void take_outputs(Case &c) {
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
}

inline void take_stale(Case &c) {
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
}

inline void define_case() {
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
  if (!c.arena || tk_arena_seal(c.arena) || !c.references.freeze() || !c.stale_bytes.freeze()) {
    const std::string why = std::strerror(errno);
    cases.erase(key);
    return fail("no memory for the buffers of a case: " + why);
  }
  done();
}

struct Library {
  tk_module *module = nullptr;
  std::vector<std::string> kernels;
};

inline std::map<uint32_t, Library> libraries;

inline void open_library() {
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

inline void close_library() {
  const auto found = libraries.find(take<uint32_t>());
  if (found != libraries.end()) {
    tk_module_close(found->second.module);
    libraries.erase(found);
  }
  done();
}

}  // namespace server
