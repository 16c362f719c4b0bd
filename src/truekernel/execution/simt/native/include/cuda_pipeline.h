// Asynchronous copies of the C interface (CUDA C++ Programming Guide, "Pipeline Primitives Interface").
#pragma once

static inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes, size_t zeroes = 0, TK_HERE) {
  tk_copy_async(to, from, bytes, zeroes, tk_line);
}
static inline void __pipeline_commit() { tk_copy_commit(); }
static inline void __pipeline_wait_prior(unsigned newest_left_out) { tk_copy_wait(newest_left_out); }
