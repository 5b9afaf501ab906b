// A call on the worker's stack, for fibers whose own stack is small.
#pragma once

#include <memory>
#include <type_traits>

#include "pirn/fiber/detail/worker_stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace this_fiber {

/// Calls `body` where there is room: in a fiber on a small stack (`spawn_bounded`, `spawn_small`) on the worker's
/// stack, so that a bound does not count it; elsewhere directly. For calls of unknown depth, such as malloc and printf.
/// `body` is noexcept and must not suspend: in a fiber on a small stack that ends the process with a message.
template <class F>
PIRN_ALWAYS_INLINE void on_worker_stack(F&& body) noexcept {
  static_assert(std::is_nothrow_invocable_v<F&>, "no exception can leave the worker's stack");
  if (detail::worker* const w = detail::current_worker()) {
    detail::on_worker_stack(w, body);
  } else {
    detail::call_on(
        nullptr, [](void* argument) noexcept { (*static_cast<std::remove_reference_t<F>*>(argument))(); },
        const_cast<void*>(static_cast<const void*>(std::addressof(body))));
  }
}

}  // namespace this_fiber

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
