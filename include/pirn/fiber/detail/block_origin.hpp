// Scopes and bound values that are opened on the stack of a body: pirn/context/detail/body_blocks.hpp.
#pragma once

#include <cstdint>

#include "pirn/context/arch.hpp"
#include "pirn/fiber/detail/agent.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

struct body_scopes;

/// Where a block was opened, and by which agent.
struct block_origin {
  agent* by = nullptr;
  arch::word position = 0;
  bool in_body = false;  ///< on another stack than the agent's
};
/// Called when a block is opened.
[[nodiscard]] block_origin block_opened(agent& self, arch::word position) noexcept;
void block_closed(const block_origin& origin) noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
