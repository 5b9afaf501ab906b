// When the buffer of a swapped task gives way to a smaller one. For stack_swap.hpp and compat/usched.h.
#pragma once

#include <cstddef>

#include "pirn/coro/detail/swap_image.hpp"
#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// The rule by which a `stack_swap` exchanges a buffer that is much too large, which a task keeps after it was deep
/// once, for one that fits. A policy may have one as `static constexpr swap_shrink shrink`; otherwise the defaults
/// apply.
struct swap_shrink {
  std::size_t ratio = 4;    ///< a buffer of more than this number of images is too large; 0: buffers never shrink
  std::size_t after = 4;    ///< the number of blocks in a row that must find it too large: 1 to 4
  std::size_t keep = 4096;  ///< buffers of at most this number of bytes stay

  /// Returns whether a buffer of `capacity` bytes may be exchanged at all.
  [[nodiscard]] constexpr bool applies_to(std::size_t capacity) const noexcept { return ratio != 0 && capacity > keep; }
  /// Returns whether a buffer of `capacity` bytes is too large for an image of `size` bytes.
  [[nodiscard]] constexpr bool too_large(std::size_t capacity, std::size_t size) const noexcept {
    return ratio != 0 && size * ratio < capacity;
  }
  /// Returns the size of the buffer that replaces it: a quarter more than the image, so that small changes of depth
  /// cost nothing.
  [[nodiscard]] static constexpr std::size_t size_for(std::size_t size) noexcept {
    return (size + size / 4) & ~(detail::swap_block - 1);
  }
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
