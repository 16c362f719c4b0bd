// What checks call: all of g++, and those of array bounds and alignment in checked builds of clang (its others trap, see fault.cpp). The first argument of every handler starts with the place in
// the source: file name, line and column.
#include "fault.h"

using namespace tk;

namespace {

struct SourceLocation {
  const char *file;
  uint32_t line, column;
};

Place place_of(const void *data, void *from) {
  Place place;
  place.line = int(static_cast<const SourceLocation *>(data)->line);
  place.pc = reinterpret_cast<uint64_t>(from) - 1;
  return place;
}

}  // namespace

#define HANDLER extern "C" __attribute__((visibility("default")))
#define HERE __builtin_return_address(0)

HANDLER void __ubsan_handle_divrem_overflow(void *data, void *, void *) {
  fail(TK_HOST_DIFFERS, place_of(data, HERE), "integer division by zero, or the quotient overflows");
}
HANDLER void __ubsan_handle_shift_out_of_bounds(void *data, void *, void *) {
  fail(TK_HOST_DIFFERS, place_of(data, HERE), "shift by the type's width or more, or by a negative number");
}
HANDLER void __ubsan_handle_float_cast_overflow(void *data, void *) {
  fail(TK_HOST_DIFFERS, place_of(data, HERE), "floating-point value out of the integer type's range");
}
// Data: location, types of the array and of the index, whose value is the argument where it fits one.
HANDLER void __ubsan_handle_out_of_bounds(void *data, void *index) {
  struct Type {
    uint16_t kind, info;  // kind 0: integer; info: whether it is signed, and twice the logarithm of its bits
    char name[1];
  };
  struct Bounds {
    SourceLocation location;
    const Type *array, *index;
  };
  const auto bounds = static_cast<const Bounds *>(data);
  const unsigned bits = 1u << (bounds->index->info >> 1);
  if (bounds->index->kind != 0 || bits > 64) fail(TK_OUT_OF_BOUNDS, place_of(data, HERE), "array index out of bounds");
  const unsigned unused = 64 - bits;
  const auto value = int64_t(reinterpret_cast<uint64_t>(index) << unused) >> unused;
  fail(TK_OUT_OF_BOUNDS, place_of(data, HERE), "index %lld of %.80s", (long long)value, bounds->array->name);
}
// Data: location, type descriptor, log2 of the alignment, kind of access (0 = load, 1 = store).
HANDLER void __ubsan_handle_type_mismatch_v1(void *data, void *pointer) {
  struct Mismatch {
    SourceLocation location;
    const void *type;
    uint8_t log_alignment, kind;
  };
  const auto mismatch = static_cast<const Mismatch *>(data);
  Place place = place_of(data, HERE);
  place.address = reinterpret_cast<uint64_t>(pointer);
  place.write = mismatch->kind == 1;
  if (place.address < 65536) {
    if (!place.address) place.address = 1;
    fail_out_of_bounds(place);
  }
  fail(TK_MISALIGNED, place, "address is no multiple of %u", 1u << mismatch->log_alignment);
}
HANDLER void __ubsan_handle_divrem_overflow_abort(void *data, void *a, void *b) { __ubsan_handle_divrem_overflow(data, a, b); }
HANDLER void __ubsan_handle_shift_out_of_bounds_abort(void *data, void *a, void *b) {
  __ubsan_handle_shift_out_of_bounds(data, a, b);
}
HANDLER void __ubsan_handle_float_cast_overflow_abort(void *data, void *a) { __ubsan_handle_float_cast_overflow(data, a); }
HANDLER void __ubsan_handle_out_of_bounds_abort(void *data, void *a) { __ubsan_handle_out_of_bounds(data, a); }
HANDLER void __ubsan_handle_type_mismatch_v1_abort(void *data, void *a) { __ubsan_handle_type_mismatch_v1(data, a); }
