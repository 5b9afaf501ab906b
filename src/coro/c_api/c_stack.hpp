// A stack of the C API, which knows itself: this lies at its end.
#pragma once

#include <cstddef>

#include "pirn/pirn.h"

struct pirn_stack {
  char* limit;
  void* mapping;  // null in the caller's memory
  std::size_t mapped;
  bool taken;  // by a coroutine or a borrower
  bool lent;
};

namespace pirn_c {

inline char* end_of(const pirn_stack* stack) noexcept {
  return reinterpret_cast<char*>(const_cast<pirn_stack*>(stack));
}

}  // namespace pirn_c
