// The misuse that fibers on small stacks of both kinds share.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "pirn/fiber/detail/control.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

[[noreturn]] PIRN_NOINLINE inline void tell_suspends_elsewhere(const fiber_control& self) noexcept {
  std::fprintf(stderr,
               "pirn: fiber %llu \"%s\" suspends inside this_fiber::on_worker_stack, on a stack that all fibers of the "
               "worker share\n",
               static_cast<unsigned long long>(self.number()), self.name());
  std::abort();
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
