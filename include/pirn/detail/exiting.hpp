// Whether what a destructor finds in use is so because the process ends.
#pragma once

#include "pirn/detail/abi.hpp"

namespace pirn::inline PIRN_ABI::platform {

/// `exiting` of the library; null in a program that is not linked with it, or uses no stack pool of it.
[[nodiscard]] bool exiting_if_linked() noexcept __attribute__((weak));

/// Whether the caller is part of `exit`, so that what runs stays as it is: its body has called `exit`, or waits for one
/// that has. Walks the stack: for those who would otherwise end the process with a message.
[[nodiscard, gnu::cold, gnu::noinline]] inline bool left_to_exit() noexcept {
  return &exiting_if_linked != nullptr && exiting_if_linked();
}

}  // namespace pirn::inline PIRN_ABI::platform
