// What a thread knows about other threads' past: a sparse vector clock with reference counts.
#pragma once
#include <stdint.h>

namespace tk {

// An entry says: accesses of `who` with a time below `time` are known. `who` is a block's start number << 11 for all of its threads,
// | (thread + 1) for one of them.
struct Known {
  uint64_t who;
  uint32_t time;
};

struct Knowledge {
  uint32_t references;
  uint32_t count, capacity;
  Known *entries;  // sorted by who
};

constexpr uint64_t whole_block(uint32_t start) { return uint64_t(start) << 11; }
constexpr uint64_t one_thread(uint32_t start, unsigned thread) { return uint64_t(start) << 11 | (thread + 1); }

Knowledge *new_knowledge();
Knowledge *share(Knowledge *);
void drop(Knowledge *&);
void learn(Knowledge *, uint64_t who, uint32_t time);  // only while nobody shares it
// Makes *into know what `from` knows: in place when nobody shares it, else in a copy.
void learn_all(Knowledge *&into, Knowledge *from);
bool knows(const Knowledge *, uint32_t start, unsigned thread, uint32_t time);

}  // namespace tk
