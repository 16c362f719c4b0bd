// The digest of truekernel/numerics/digest.py for raw buffers on a CPU; items.cuh has the device's. C++17, no dependencies, little-endian machines.
#ifndef TRUEKERNEL_DIGEST_H
#define TRUEKERNEL_DIGEST_H

#include <cstdint>
#include <cstring>

namespace truekernel_digest {

constexpr uint64_t kIndex = 0x9E3779B97F4A7C15ULL;

inline uint64_t mixed(uint64_t index, uint64_t low, uint64_t high) {
  uint64_t h = low ^ (index * kIndex + 0xD1B54A32D192ED03ULL);
  h = (h ^ (h >> 32)) * 0xFF51AFD7ED558CCDULL;
  h = ((h ^ (h >> 29)) + high) * 0xC4CEB9FE1A85EC53ULL;
  h = (h ^ (h >> 32)) * 0xFF51AFD7ED558CCDULL;
  return h ^ (h >> 29);
}

}  // namespace truekernel_digest

// What the bytes of output `number` of an execution add to its digest; the digest is the sum over all outputs.
static inline uint64_t tk_digest_of(const void *data, uint64_t bytes, uint64_t number) {
  using namespace truekernel_digest;
  const unsigned char *at = static_cast<const unsigned char *>(data);
  const uint64_t vectors = bytes / 16, first = number << 40;
  uint64_t total = bytes * kIndex, words[2];
  for (uint64_t v = 0; v < vectors; v++) {
    std::memcpy(words, at + 16 * v, 16);
    total += mixed(first + v, words[0], words[1]);
  }
  if (bytes % 16) {
    words[0] = words[1] = 0;
    std::memcpy(words, at + 16 * vectors, bytes % 16);
    total += mixed(first + vectors, words[0], words[1]);
  }
  return total;
}

#endif  // TRUEKERNEL_DIGEST_H
