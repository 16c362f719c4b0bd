// Checks of single memory accesses in checked libraries.
#pragma once
#include "internal.h"
#include "order.h"

namespace tk {

enum class Access : uint8_t { read, write, atomic, volatile_read, volatile_write };

// Bounds, initialisation and order of one access; ends the child when it breaks a rule.
// `line`: where in the source, when the caller knows; then `pc` is not looked at.
void check_access(uint64_t address, unsigned size, Access kind, uint64_t pc, int line = 0);
void order_begin_launch();
void order_begin_block(Block *);

const void *buffer_start(uint32_t i);
uint64_t buffer_bytes(uint32_t i);
uint32_t buffer_role(uint32_t i);
uint32_t buffer_count();
struct SharedBounds {
  uint64_t static_low, static_size, dynamic_low, dynamic_size;
};
SharedBounds shared_bounds();             // of the block that runs
uint64_t shared_bytes(const Block *b);    // from the first static variable to the end of the dynamic ones

}  // namespace tk
