// Asynchronous copies, and the device heap.
#include <stdlib.h>
#include <string.h>

#include "checker.h"

namespace tk {

namespace {

struct Copy {
  Copy *next;
  void *to;
  const void *from;
  size_t bytes, zeroes;
  unsigned batch;
  int line;
};

struct Pipeline {
  Copy *first, *last;
  unsigned committed;  // batches
};

// For each resident block, made when it first copies.
Pipeline *pipelines[kMaxResident];
bool any_copies;

Pipeline &mine() {
  Pipeline *&of_block = pipelines[block->slot];
  if (!of_block) of_block = static_cast<Pipeline *>(calloc(kMaxThreads, sizeof(Pipeline)));
  return of_block[current];
}

void do_copy(const Copy &copy) {
  if (checking) {
    const auto from = reinterpret_cast<uint64_t>(copy.from), to = reinterpret_cast<uint64_t>(copy.to);
    if (copy.bytes > copy.zeroes) check_access(from, unsigned(copy.bytes - copy.zeroes), Access::read, 0, copy.line);
    check_access(to, unsigned(copy.bytes), Access::write, 0, copy.line);
  }
  memcpy(copy.to, copy.from, copy.bytes - copy.zeroes);
  memset(static_cast<char *>(copy.to) + copy.bytes - copy.zeroes, 0, copy.zeroes);
}

void do_batches_before(Pipeline &pipeline, unsigned batch) {
  while (pipeline.first && int(pipeline.first->batch - batch) < 0) {
    Copy *copy = pipeline.first;
    pipeline.first = copy->next;
    do_copy(*copy);
    free(copy);
  }
}

constexpr size_t kHeap = size_t(8) << 20;
size_t heap_used;

}  // namespace

void finish_copies() {
  if (!any_copies) return;
  Pipeline &pipeline = mine();
  do_batches_before(pipeline, pipeline.committed + 1);
  pipeline.committed = 0;
}

void begin_heap() { heap_used = 0; }

}  // namespace tk

using namespace tk;

extern "C" void tk_copy_async(void *to, const void *from, size_t bytes, size_t zeroes, int line) {
  Place place;
  place.line = line;
  if ((bytes != 4 && bytes != 8 && bytes != 16) || zeroes > bytes)
    fail(TK_TRAP, place, "asynchronous copy of %zu bytes with %zu zeroes: 4, 8 or 16 bytes", bytes, zeroes);
  place.address = reinterpret_cast<uint64_t>(to);
  if ((reinterpret_cast<uint64_t>(to) | reinterpret_cast<uint64_t>(from)) & (bytes - 1))
    fail(TK_MISALIGNED, place, "asynchronous copy of %zu bytes at an address that is no multiple of it", bytes);
  Pipeline &pipeline = mine();
  any_copies = true;
  auto copy = static_cast<Copy *>(malloc(sizeof(Copy)));
  if (!copy) fail(TK_INFRASTRUCTURE, place, "no memory for asynchronous copies");
  *copy = {nullptr, to, from, bytes, zeroes, pipeline.committed, line};
  if (pipeline.first)
    pipeline.last->next = copy;
  else
    pipeline.first = copy;
  pipeline.last = copy;
}

extern "C" void tk_copy_commit() { ++mine().committed; }

extern "C" void tk_copy_wait(unsigned int newest_left_out) {
  Pipeline &pipeline = mine();
  if (pipeline.committed > newest_left_out) do_batches_before(pipeline, pipeline.committed - newest_left_out);
}

extern "C" void *tk_heap_allocate(size_t bytes) {
  if (bytes > kHeap || heap_used + bytes > kHeap) return nullptr;
  const size_t size = (bytes + 31) & ~size_t(15);
  auto p = static_cast<char *>(malloc(size));
  if (!p) return nullptr;
  heap_used += size;
  *reinterpret_cast<size_t *>(p) = size;
  return p + 16;
}

extern "C" void tk_heap_free(void *pointer) {
  if (!pointer) return;
  char *p = static_cast<char *>(pointer) - 16;
  heap_used -= *reinterpret_cast<size_t *>(p);
  free(p);
}
