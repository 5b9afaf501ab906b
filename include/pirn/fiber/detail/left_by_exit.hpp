// What a process that ends has left.
#pragma once

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Whether the process ends and a runtime was destroyed before its fibers have ended: what they would do is not done
/// any more. For destructors that wait for fibers whose runtime they do not know.
[[nodiscard]] bool fibers_are_left() noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
