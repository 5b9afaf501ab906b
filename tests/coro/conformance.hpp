// Shared by the files of the conformance program of coro. Like that of the context layer it includes little and uses no
// test framework, because it is compiled with dozens of combinations of options.
#pragma once

#include <cstddef>

#include "pirn/stack/stack.hpp"

#if defined(__clang__)
#define CONFORMANCE_KEEP __attribute__((noinline))
#else
#define CONFORMANCE_KEEP __attribute__((noipa))
#endif

namespace conformance {

/// Prints the outcome of one check and remembers a failure.
void expect(bool passed, const char* what);
void expect(bool passed, const char* kind, const char* what);

/// Memory for a coroutine; the library's own stacks would have to be compiled too.
class memory {
 public:
  memory() noexcept {}
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  [[nodiscard]] pirn::stack stack() noexcept { return {bytes_, bytes_ + sizeof bytes_}; }

 private:
  alignas(64) char bytes_[64 * 1024];
};

void check_coroutines();
void check_copied();
void check_pushed();
void check_unwinding();

}  // namespace conformance
