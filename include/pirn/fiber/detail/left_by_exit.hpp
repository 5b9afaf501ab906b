// Fibers that are left when a process ends.
#pragma once

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Whether the process ends and a runtime was destroyed before its fibers have ended: they do not run any more. For
/// destructors that wait for fibers whose runtime they do not know.
[[nodiscard]] bool fibers_are_left() noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
