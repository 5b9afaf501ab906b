// What chance decides, and in an exploration the schedule, which tries everything.
#pragma once

#include <cstddef>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

/// One of `count` numbers from 0; each as likely as the others. Of the calling thread; no suspension point.
[[nodiscard]] std::size_t chance(std::size_t count) noexcept;

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
