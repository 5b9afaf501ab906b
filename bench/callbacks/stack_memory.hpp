// The memory of a new stack: from malloc, or from calloc, which clears what it reuses and takes all of a large block
// from the kernel.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace bench {

inline void* stack_memory(std::size_t size) {
#if defined(BENCH_STACKS_FROM_CALLOC)
  return std::calloc(1, size);
#else
  return std::malloc(size);
#endif
}

}  // namespace bench
