// The engines of pirn's programs of the bench.
#pragma once

#include "harness.hpp"
#include "pirn/fiber/runtime.hpp"

namespace bench {

constexpr pirn::engine_kind epoll = pirn::engine_kind::epoll;

/// Returns the engine for io_uring, or skips where the kernel refuses it.
inline pirn::engine_kind uring() {
  if (const char* const refusal = pirn::uring_refusal()) {
    skip(refusal);
  }
  return pirn::engine_kind::uring;
}

}  // namespace bench
