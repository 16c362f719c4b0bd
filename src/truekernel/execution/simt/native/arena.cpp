// Device buffers. Initial contents live in a memory file that the server fills; a child maps it copy-on-write, so that going
// back to them means dropping the pages it wrote. The server itself maps no buffer: each mapping would cost every fork a microsecond,
// and a problem has thousands.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

namespace {

constexpr size_t kSlack = tk::kPage;
constexpr size_t kGap = size_t(16) << 20;  // inaccessible, between buffers
constexpr uint64_t kAlignment = 256;

// What slack holds: as float 3.0, 12.1, 48.6 or 196, by turns, so that what strays in is big enough to be seen in a result, and does not cancel between buffers.
constexpr uint8_t canary_of(uint32_t buffer) { return uint8_t(0x40 + buffer % 4); }
// Or a NaN in every format, which no factor of zero hides.
constexpr uint8_t kNan = 0xFF;

size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }
size_t whole_pages(size_t bytes) { return round_up(bytes, tk::kPage); }

struct Buffer {
  uint64_t nbytes;
  uint32_t role;
  char *mapping;     // kSlack bytes or more, then the data, then kSlack bytes and what its alignment leaves
  size_t mapped;     // whole pages
  size_t file_offset;
  size_t before() const { return mapped - kSlack - round_up(nbytes, kAlignment); }
  char *data() const { return mapping + before(); }
};

}  // namespace

struct tk_arena {
  uint32_t count;
  Buffer *buffers;
  char *reservation;
  size_t reserved;
  int file;
  size_t file_size;
  char *pristine;  // the whole file, writable, in the server until it is sealed
  bool mapped;     // in this process
  bool nan_slack;  // since the last reset
  uint8_t *unlocked;        // an input that may be written now
  int64_t *first_write;     // offset of the first write to an input, or -1
};

namespace tk {

tk_arena *active_arena;

int nearest_buffer(uint64_t address, int64_t *offset, uint64_t *size) {
  if (!active_arena) return -1;
  int nearest = -1;
  uint64_t least = ~0ull;
  for (uint32_t i = 0; i < active_arena->count; ++i) {
    const Buffer &buffer = active_arena->buffers[i];
    const auto start = reinterpret_cast<uint64_t>(buffer.data());
    const uint64_t end = start + buffer.nbytes;
    const uint64_t distance = address < start ? start - address : address >= end ? address - end + 1 : 0;
    if (distance < least) {
      least = distance;
      nearest = int(i);
      *offset = int64_t(address - start);
      *size = buffer.nbytes;
    }
  }
  return least < kFar ? nearest : -1;
}

bool arena_contains(uint64_t address) {
  return active_arena && address - reinterpret_cast<uint64_t>(active_arena->reservation) < active_arena->reserved;
}

bool unlock_on_write(uint64_t address) {
  tk_arena *arena = active_arena;
  if (!arena) return false;
  for (uint32_t i = 0; i < arena->count; ++i) {
    const Buffer &buffer = arena->buffers[i];
    if (address - reinterpret_cast<uint64_t>(buffer.mapping) >= buffer.mapped) continue;
    if (arena->unlocked[i]) return false;
    arena->first_write[i] = int64_t(address - reinterpret_cast<uint64_t>(buffer.data()));
    tk_arena_unlock(arena, i);
    return true;
  }
  return false;
}

bool is_protected_input(const Buffer &buffer) { return (buffer.role & 15) == TK_INPUT && !(buffer.role & TK_MUTABLE); }

const void *buffer_start(uint32_t i) { return active_arena->buffers[i].data(); }
uint64_t buffer_bytes(uint32_t i) { return active_arena->buffers[i].nbytes; }
uint32_t buffer_role(uint32_t i) { return active_arena->buffers[i].role; }
uint32_t buffer_count() { return active_arena ? active_arena->count : 0; }

}  // namespace tk

using namespace tk;

extern "C" tk_arena *tk_arena_create(const tk_buffer_spec *specs, uint32_t count) {
  auto arena = static_cast<tk_arena *>(calloc(1, sizeof(tk_arena)));
  if (!arena) return nullptr;
  arena->count = count;
  arena->buffers = static_cast<Buffer *>(calloc(count + 1, sizeof(Buffer)));
  arena->unlocked = static_cast<uint8_t *>(calloc(count + 1, 1));
  arena->first_write = static_cast<int64_t *>(calloc(count + 1, sizeof(int64_t)));
  size_t span = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Buffer &buffer = arena->buffers[i];
    buffer.nbytes = specs[i].nbytes;
    buffer.role = specs[i].role;
    buffer.file_offset = arena->file_size;
    buffer.mapped = 2 * kSlack + whole_pages(specs[i].nbytes);
    arena->file_size += buffer.mapped;
    span += buffer.mapped + kGap;
  }
  arena->reserved = span + 2 * kFar;
  arena->file = memfd_create("truekernel-arena", MFD_CLOEXEC);
  if (arena->file < 0 || ftruncate(arena->file, off_t(arena->file_size + kPage)) != 0) {
    const int why = errno;
    tk_arena_destroy(arena);
    errno = why;
    return nullptr;
  }
  arena->reservation = static_cast<char *>(
      mmap(nullptr, arena->reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  arena->pristine = static_cast<char *>(
      mmap(nullptr, arena->file_size + kPage, PROT_READ | PROT_WRITE, MAP_SHARED, arena->file, 0));
  if (arena->reservation == MAP_FAILED || arena->pristine == MAP_FAILED) {
    tk_arena_destroy(arena);
    errno = ENOMEM;
    return nullptr;
  }
  // A child must not be able to change what later children start from.
  madvise(arena->pristine, arena->file_size + kPage, MADV_DONTFORK);
  char *next = arena->reservation + kFar;
  for (uint32_t i = 0; i < count; ++i) {
    Buffer &buffer = arena->buffers[i];
    buffer.mapping = next;
    next += buffer.mapped + kGap;
    char *contents = arena->pristine + buffer.file_offset;
    memset(contents, canary_of(i), buffer.mapped);
    memset(contents + buffer.before(), (buffer.role & 15) == TK_ZEROED ? 0 : 0xFF, buffer.nbytes);
    arena->first_write[i] = -1;
  }
  return arena;
}

extern "C" int tk_arena_seal(tk_arena *arena) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", arena->file);
  const int read_only = open(path, O_RDONLY | O_CLOEXEC);
  if (read_only < 0) return -1;
  munmap(arena->pristine, arena->file_size + kPage);
  arena->pristine = nullptr;
  close(arena->file);
  arena->file = read_only;
  return 0;
}

extern "C" void *tk_arena_pristine(tk_arena *arena, uint32_t buffer) {
  return arena->pristine + arena->buffers[buffer].file_offset + arena->buffers[buffer].before();
}

extern "C" void *tk_arena_address(const tk_arena *arena, uint32_t buffer) { return arena->buffers[buffer].data(); }

extern "C" uint64_t tk_arena_size(const tk_arena *arena, uint32_t buffer) { return arena->buffers[buffer].nbytes; }

extern "C" void tk_arena_destroy(tk_arena *arena) {
  if (!arena) return;
  if (arena->reservation && arena->reservation != MAP_FAILED) munmap(arena->reservation, arena->reserved);
  if (arena->pristine && arena->pristine != MAP_FAILED) munmap(arena->pristine, arena->file_size + kPage);
  if (arena->file >= 0) close(arena->file);
  free(arena->buffers);
  free(arena->unlocked);
  free(arena->first_write);
  free(arena);
}

static void map_buffers(tk_arena *arena) {
  for (uint32_t i = 0; i < arena->count; ++i) {
    const Buffer &buffer = arena->buffers[i];
    const int protection = PROT_READ | (is_protected_input(buffer) ? 0 : PROT_WRITE), flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE | MAP_POPULATE;
    if (mmap(buffer.mapping, buffer.mapped, protection, flags, arena->file, off_t(buffer.file_offset)) == MAP_FAILED)
      fail(TK_INFRASTRUCTURE, {}, "no memory for the buffers of a case");
  }
  arena->mapped = true;
}

extern "C" void tk_arena_nan_slack(tk_arena *arena) {
  arena->nan_slack = true;
  for (uint32_t i = 0; i < arena->count; ++i) {
    const Buffer &buffer = arena->buffers[i];
    const bool closed = is_protected_input(buffer) && !arena->unlocked[i];
    if (closed) mprotect(buffer.mapping, buffer.mapped, PROT_READ | PROT_WRITE);
    const size_t behind = buffer.before() + buffer.nbytes;
    memset(buffer.mapping, kNan, buffer.before());
    memset(buffer.mapping + behind, kNan, buffer.mapped - behind);
    if (closed) mprotect(buffer.mapping, buffer.mapped, PROT_READ);
  }
}

extern "C" void tk_arena_reset(tk_arena *arena) {
  active_arena = arena;
  if (!arena->mapped) return map_buffers(arena);
  for (uint32_t i = 0; i < arena->count; ++i) {
    const Buffer &buffer = arena->buffers[i];
    if (is_protected_input(buffer)) {
      if (!arena->unlocked[i] && !arena->nan_slack) continue;
      mprotect(buffer.mapping, buffer.mapped, PROT_READ);
      arena->unlocked[i] = 0;
      arena->first_write[i] = -1;
    }
    madvise(buffer.mapping, buffer.mapped, MADV_DONTNEED);
  }
  arena->nan_slack = false;
}

extern "C" void tk_arena_unlock(tk_arena *arena, uint32_t buffer) {
  if (arena->unlocked[buffer] || !is_protected_input(arena->buffers[buffer])) return;
  mprotect(arena->buffers[buffer].mapping, arena->buffers[buffer].mapped, PROT_READ | PROT_WRITE);
  arena->unlocked[buffer] = 1;
}

// First byte of [from, to) that is not the canary, or `to`.
static const char *first_change(const char *from, const char *to, uint8_t canary) {
  for (; from < to && uintptr_t(from) % 8; ++from)
    if (uint8_t(*from) != canary) return from;
  const uint64_t eight = canary * 0x0101010101010101ull;
  for (uint64_t word; from + 8 <= to && (memcpy(&word, from, 8), word == eight);) from += 8;
  while (from < to && uint8_t(*from) == canary) ++from;
  return from;
}

extern "C" uint32_t tk_arena_check(tk_arena *arena, tk_hazard *out, uint32_t capacity) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < arena->count; ++i) {
    const Buffer &buffer = arena->buffers[i];
    const char *data = buffer.data(), *end = data + buffer.nbytes;
    if (is_protected_input(buffer)) {
      const int64_t first = arena->first_write[i];
      if (first < 0 && !arena->unlocked[i]) continue;
      if (first >= 0 && first < int64_t(buffer.nbytes) && found < capacity) out[found++] = {TK_HAZARD_INPUT, i, first};
    }
    const uint8_t canary = arena->nan_slack ? kNan : canary_of(i);
    const char *before = first_change(buffer.mapping, data, canary);
    if (before < data && found < capacity) {
      // The change nearest to the buffer tells more than the first.
      while (uint8_t(data[-1]) == canary && data - 1 > before) --data;
      out[found++] = {TK_HAZARD_BEFORE, i, data - 1 - buffer.data()};
    }
    const char *limit = buffer.mapping + buffer.mapped;
    const char *after = first_change(end, limit, canary);
    if (after < limit && found < capacity) out[found++] = {TK_HAZARD_AFTER, i, after - buffer.data()};
  }
  return found;
}
