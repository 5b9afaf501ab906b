// The way in which a program of the bench reports its fibers to saved_bytes.py.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "pirn/fiber/runtime.hpp"

namespace bench {

/// Reports the stack and the context of the calling fiber to saved_bytes.py, if that asks.
inline void tell_of_fiber() {
  if (std::getenv("PIRN_BENCH_TELL") != nullptr) {
    const pirn::detail::fiber_control& self = *pirn::detail::running_fiber(pirn::detail::current_worker());
    std::fprintf(stderr, "fiber %p %p %p\n", self.memory.limit(), self.memory.top(),
                 static_cast<const void*>(&self.state));
  }
}

}  // namespace bench
