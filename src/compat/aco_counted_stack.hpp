// What the library keeps of a share stack besides what aco.h shows.
#pragma once

#include <cstddef>

#include "aco.h"
#include "pirn/detail/abi.hpp"

namespace pirn_aco {

/// A share stack, and how many may still ask for it.
struct counted_stack {
  aco_share_stack_t visible;
  std::size_t coroutines;  // not destroyed; once the stack is (its ptr is null), the last one frees this
};
PIRN_ALWAYS_INLINE counted_stack& counted(aco_share_stack_t* stack) noexcept {
  return *reinterpret_cast<counted_stack*>(stack);
}

}  // namespace pirn_aco
