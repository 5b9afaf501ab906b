// The library's data of a share stack that aco.h does not show.
#pragma once

#include <cstddef>

#include "aco.h"
#include "pirn/detail/abi.hpp"

namespace pirn_aco {

struct slab;
struct chunk;

/// A share stack, its coroutines' memory, and the number of coroutines that may still ask for it.
struct counted_stack {
  aco_share_stack_t visible;
  std::size_t coroutines;  // not destroyed; once the stack is (its ptr is null), the last coroutine frees this
  slab* open;              // the first one with a free place
  unsigned places;         // of the newest slab
  static constexpr std::size_t block_sizes = 61;
  chunk* chunks[block_sizes];  // of each size of blocks the first one with a free block
};
PIRN_ALWAYS_INLINE counted_stack& counted(aco_share_stack_t* stack) noexcept {
  return *reinterpret_cast<counted_stack*>(stack);
}

}  // namespace pirn_aco
