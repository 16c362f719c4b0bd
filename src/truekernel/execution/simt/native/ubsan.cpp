// What g++'s checks call (clang's trap instead, see fault.cpp). The first argument of every handler starts with the place in
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
HANDLER void __ubsan_handle_out_of_bounds(void *data, void *) {
  fail(TK_OUT_OF_BOUNDS, place_of(data, HERE), "array index out of bounds");
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
