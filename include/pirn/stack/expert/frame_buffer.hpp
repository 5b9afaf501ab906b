// A stack inside its creator's own frame: no allocation at all.
#pragma once

#include <cstddef>

#include "pirn/context/detail/stack_end.hpp"
#include "pirn/stack/stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Holds one stack of N bytes and is a stack_allocator that hands it out. It has no guard: an overflow overwrites the
/// memory below it in the creator's frame, after a margin of 256 bytes (128, if N is below 2048), so it is for code
/// whose depth is known. A coroutine or generator that overflowed ends the program with a message, if the program comes
/// that far. Not thread-safe. It must outlive the code that runs on it, and cannot be copied or moved, since its frames
/// would be too.
template <std::size_t N>
class frame_buffer {
  static_assert(N >= 512 && N % 16 == 0, "the size of a stack must be a multiple of 16 bytes, and at least 512");

 public:
  frame_buffer() noexcept {}  // the bytes stay as they are
  frame_buffer(const frame_buffer&) = delete;
  frame_buffer& operator=(const frame_buffer&) = delete;

  /// Returns the stack; pool_limit while it is taken, invalid_size for more than N bytes.
  [[nodiscard]] stack_result allocate(std::size_t size) noexcept {
    if (size == 0 || size > N) {
      return {stack{}, stack_error::invalid_size};
    }
    if (taken_) {
      return {stack{}, stack_error::pool_limit};
    }
    taken_ = true;
    return {stack{limit(), bytes_ + sizeof bytes_, this}, stack_error::none};
  }
  /// Takes the stack back.
  void deallocate(stack) noexcept { taken_ = false; }
  /// The lowest byte.
  [[nodiscard]] void* limit() noexcept { return bytes_ + margin; }
  /// Bytes below that, which only an overflow writes to.
  static constexpr std::size_t margin = N < 2048 ? 128 : 256;

 private:
  alignas(16) char bytes_[margin + N];
  bool taken_ = false;
};
static_assert(stack_allocator<frame_buffer<512>>);

namespace detail {
template <std::size_t N>
inline constexpr bool marks_end<frame_buffer<N>> = true;
template <std::size_t N>
inline constexpr std::size_t margin_below<frame_buffer<N>> = frame_buffer<N>::margin;
}  // namespace detail

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
