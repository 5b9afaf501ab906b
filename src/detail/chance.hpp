// Decisions by chance. In an exploration the schedule makes them, and tries every outcome.
#pragma once

#include <cstddef>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

/// Returns one of `count` numbers from 0, each as likely as the others. Uses the calling thread's generator; not a
/// suspension point.
[[nodiscard]] std::size_t chance(std::size_t count) noexcept;

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
