// How a peer is kept in memory.
#pragma once

#include "pirn/context/arch.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A peer in memory. Its members have different types: otherwise gcc would move two words at once, and so combine and
/// separate them around every switch.
struct stored_peer {
  void* pc = nullptr;
  arch::word sp = 0;
  void* fp = nullptr;

  PIRN_ALWAYS_INLINE stored_peer() noexcept = default;
  PIRN_ALWAYS_INLINE stored_peer(void* where, arch::word stack, void* frame) noexcept
      : pc(where), sp(stack), fp(frame) {}
  PIRN_ALWAYS_INLINE explicit stored_peer(const arch::peer& from) noexcept
      : pc(from.pc), sp(reinterpret_cast<arch::word>(from.sp)), fp(from.fp) {}
  [[nodiscard]] PIRN_ALWAYS_INLINE arch::peer get() const noexcept { return {pc, reinterpret_cast<void*>(sp), fp}; }
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
