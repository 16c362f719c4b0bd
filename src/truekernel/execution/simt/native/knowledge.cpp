#include "knowledge.h"

#include <stdlib.h>
#include <string.h>

namespace tk {

Knowledge *new_knowledge() {
  auto k = static_cast<Knowledge *>(calloc(1, sizeof(Knowledge)));
  k->references = 1;
  return k;
}

Knowledge *share(Knowledge *k) {
  if (k) ++k->references;
  return k;
}

void drop(Knowledge *&k) {
  if (k && --k->references == 0) {
    free(k->entries);
    free(k);
  }
  k = nullptr;
}

static uint32_t position(const Knowledge *k, uint64_t who) {
  uint32_t low = 0, high = k->count;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (k->entries[middle].who < who)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void reserve(Knowledge *k, uint32_t count) {
  if (count <= k->capacity) return;
  k->capacity = count + count / 2 + 4;
  k->entries = static_cast<Known *>(realloc(k->entries, k->capacity * sizeof(Known)));
}

void learn(Knowledge *k, uint64_t who, uint32_t time) {
  const uint32_t at = position(k, who);
  if (at < k->count && k->entries[at].who == who) {
    if (k->entries[at].time < time) k->entries[at].time = time;
    return;
  }
  reserve(k, k->count + 1);
  memmove(k->entries + at + 1, k->entries + at, (k->count - at) * sizeof(Known));
  k->entries[at] = {who, time};
  ++k->count;
}

static bool covers(const Knowledge *a, const Knowledge *b) {
  for (uint32_t i = 0; i < b->count; ++i) {
    const uint32_t at = position(a, b->entries[i].who);
    if (at == a->count || a->entries[at].who != b->entries[i].who || a->entries[at].time < b->entries[i].time) return false;
  }
  return true;
}

void learn_all(Knowledge *&into, Knowledge *from) {
  if (!from || into == from) return;
  if (!into) {
    into = share(from);
    return;
  }
  if (covers(into, from)) return;
  if (into->references > 1) {
    Knowledge *copy = new_knowledge();
    reserve(copy, into->count + from->count);
    memcpy(copy->entries, into->entries, into->count * sizeof(Known));
    copy->count = into->count;
    drop(into);
    into = copy;
  }
  for (uint32_t i = 0; i < from->count; ++i) learn(into, from->entries[i].who, from->entries[i].time);
}

bool knows(const Knowledge *k, uint32_t start, unsigned thread, uint32_t time) {
  if (!k) return false;
  uint32_t at = position(k, whole_block(start));
  if (at < k->count && k->entries[at].who == whole_block(start) && time < k->entries[at].time) return true;
  at = position(k, one_thread(start, thread));
  return at < k->count && k->entries[at].who == one_thread(start, thread) && time < k->entries[at].time;
}

}  // namespace tk
