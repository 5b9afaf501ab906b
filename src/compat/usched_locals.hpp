// The values that threads of usched.h have for the program's variables.
#pragma once

#include "pirn/detail/platform.hpp"

namespace pirn_usched {

/// How many threads of the process have values. Only for the test whether any has.
extern pirn::platform::atomic<unsigned> threads_with_values;

/// Ends the values of a thread that has ended: `thread` is only an address.
void end_values(const void* thread);

inline void end_values_if_any(const void* thread) {
  if (threads_with_values.load(pirn::platform::memory_order_relaxed) != 0) [[unlikely]] {
    end_values(thread);
  }
}

}  // namespace pirn_usched
