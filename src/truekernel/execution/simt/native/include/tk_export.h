// TK_EXPORT(symbol, max_threads, kernel): makes a kernel callable by name, by blocks of so many threads at most (0: any number). The kernel may be a name expression with commas: reduce<256, float>.
#pragma once
#include <stddef.h>

#include <type_traits>
#include <utility>

#include "tk_kernel.h"

namespace tk_detail {

template <class Function>
struct Signature;

template <class... Args>
struct Signature<void (*)(Args...)> {
  static constexpr uint32_t count = sizeof...(Args);
  static constexpr uint32_t sizes[sizeof...(Args) + 1] = {uint32_t(sizeof(Args))..., 0};

  template <size_t... I>
  __attribute__((no_sanitize("thread"))) static void call(void (*kernel)(Args...), void **args, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_reference_t<Args> *>(args[I])...);
  }
};

}  // namespace tk_detail

#ifdef TK_CHECKED
#define TK_IS_CHECKED 1
#else
#define TK_IS_CHECKED 0
#endif

// The call goes through a volatile pointer: a compiler that sees who calls the kernel may rewrite it for that caller.
#define TK_EXPORT(symbol, max_threads, ...)                                                                          \
  extern "C" __attribute__((no_sanitize("thread"))) void symbol##_entry(void **args) {                              \
    using tk_function_type = decltype(&__VA_ARGS__);                                                                \
    tk_function_type volatile kernel = &__VA_ARGS__;                                                                \
    using tk_signature = tk_detail::Signature<tk_function_type>;                                                    \
    tk_signature::call(kernel, args, std::make_index_sequence<tk_signature::count>{});                              \
  }                                                                                                                 \
  extern "C" __attribute__((used)) const uint32_t symbol##_bound;                                                   \
  const uint32_t symbol##_bound = max_threads;                                                                      \
  extern "C" __attribute__((visibility("default"), used)) const tk_kernel symbol;                                   \
  const tk_kernel symbol = {symbol##_entry,                                                                         \
                            (const void *)static_cast<decltype(&__VA_ARGS__)>(&__VA_ARGS__),                        \
                            #__VA_ARGS__,                                                                           \
                            tk_detail::Signature<decltype(&__VA_ARGS__)>::count,                                    \
                            tk_detail::Signature<decltype(&__VA_ARGS__)>::sizes,                                    \
                            symbol##_bound,                                                                         \
                            TK_IS_CHECKED};
