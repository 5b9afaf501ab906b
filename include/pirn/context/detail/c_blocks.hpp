// The blocks of bodies (body_blocks.hpp) for the C API. It is linked without the C++ runtime and, as a shared library,
// shares no word of the thread with its program. So a yield there asks by a call, in a program that has blocks. The
// names do not depend on the build, since the library may come from another one.
#pragma once

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Blocks that were taken off; as taken_blocks.
struct blocks_of_c {
  void* links[4] = {};
};
/// Takes off the blocks that the caller, on this stack, has open there. False if there is no memory; then all is as it
/// was.
bool take_blocks_of_c(void* limit, void* top, blocks_of_c& to) noexcept asm("pirn_take_blocks_of_c")
    __attribute__((weak, visibility("default")));
/// Puts the blocks back, once the body has been resumed.
void put_blocks_of_c(const blocks_of_c& what) noexcept asm("pirn_put_blocks_of_c")
    __attribute__((weak, visibility("default")));

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
