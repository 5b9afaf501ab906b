// How a copy_stack behaves: where it keeps images, and how it finds accesses from outside.
#pragma once

#include <cstdint>

#include "pirn/detail/abi.hpp"
#include "pirn/stack/expert/image_memory.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// How a copy_stack looks for accesses to the stacks of suspended contexts.
enum class copy_stack_check : std::uint8_t {
  none,  ///< not at all; but AddressSanitizer, where the program is built with it, reports them
  /// Every access from outside faults while no context runs on the stack: two system calls for each resume. And a yield
  /// of a copied_coroutine walks the stack: see there.
  protect,
};

/// How a `copy_stack` behaves.
struct copy_stack_options {
  /// Where images are kept.
  image_memory images{};
  /// A buffer that is more than this many times as large as its image is replaced by one that fits; 0: never.
  std::uint32_t shrink_ratio = 0;
  copy_stack_check check = copy_stack_check::none;  ///< how accesses from outside are found
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
