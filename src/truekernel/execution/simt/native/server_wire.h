// The wire between the native server and its driver: stdin and stdout, little-endian, no padding (see `wire.py` for the layout).
#pragma once
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include <unistd.h>

namespace server {

constexpr uint32_t kFrameMagic = 0x31464b54u;   // "TKF1"
constexpr uint32_t kRecordMagic = 0x31584b54u;  // "TKX1"
enum FrameType : uint32_t { FRAME_RECORD = 1, FRAME_REPORT = 2, FRAME_DEATH = 3, FRAME_SKIPPED = 4, FRAME_DONE = 5, FRAME_ERROR = 6 };
enum RunFlags : uint32_t { KEEP_OUTPUTS = 1, ALLOW_SYSTEM_CALLS = 2 };
enum Fill : uint32_t { FILL_POISON = 0, FILL_STALE = 1, FILL_NAN = 2 };  // model.FILLS
enum ArgKind : uint32_t { ARG_POINTER = 0, ARG_SCALAR = 1 };

[[noreturn]] inline void leave() { _exit(0); }

inline void read_exact(void *to, size_t n) {
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
inline T take() {
  T value;
  read_exact(&value, sizeof value);
  return value;
}

inline std::string take_string() {
  std::string text(take<uint32_t>(), '\0');
  read_exact(text.data(), text.size());
  return text;
}

inline std::vector<char> pending;  // answers not yet written

inline void flush() {
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

inline void answer(FrameType type, uint32_t variant, uint32_t execution, const void *bytes, size_t n) {
  const FrameHead head{kFrameMagic, type, variant, execution, n};
  const auto *h = reinterpret_cast<const char *>(&head);
  pending.insert(pending.end(), h, h + sizeof head);
  const auto *b = static_cast<const char *>(bytes);
  if (n) pending.insert(pending.end(), b, b + n);
  if (pending.size() > (1u << 16)) flush();
}

inline void done() {
  answer(FRAME_DONE, 0, 0, nullptr, 0);
  flush();
}

inline void fail(const std::string &why) {
  answer(FRAME_ERROR, 0, 0, why.data(), why.size());
  flush();
}

}  // namespace server
