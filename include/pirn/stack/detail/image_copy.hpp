// How bytes get from a shared stack into an image and back.
#pragma once

#include <cstddef>
#include <cstring>

#include "pirn/detail/abi.hpp"

namespace pirn::inline PIRN_ABI::detail {

#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
/// Copies words of frames, whose red zones memcpy would report. Volatile, or it became a memcpy.
__attribute__((noinline, no_sanitize("address", "thread", "undefined"))) inline void copy_image(void* to,
                                                                                                const void* from,
                                                                                                std::size_t size) {
  auto* out = static_cast<std::size_t volatile*>(to);
  const auto* in = static_cast<const std::size_t volatile*>(from);
  for (std::size_t i = 0; i < size / sizeof(std::size_t); ++i) {
    out[i] = in[i];
  }
}
#else
/// Up to this many bytes a call of memcpy costs more than the moves.
inline constexpr std::size_t largest_inline_copy = 128;

template <std::size_t bytes>
PIRN_ALWAYS_INLINE void move_block(char*& to, const char*& from) noexcept {
  __builtin_memcpy(to, from, bytes);  // the widest moves that the target has
  to += bytes;
  from += bytes;
}

/// Copies `size` bytes, a multiple of a word. Each byte is written once, by a move that starts at a multiple of 16 from
/// the beginning: the words that the switch reads next are forwarded from the store that they were written by.
PIRN_ALWAYS_INLINE void copy_image(void* target, const void* source, std::size_t size) noexcept {
  auto* to = static_cast<char*>(target);
  const auto* from = static_cast<const char*>(source);
  if (size > largest_inline_copy) [[unlikely]] {
    std::memcpy(to, from, size);
    return;
  }
  for (; size >= 32; size -= 32) {
    move_block<32>(to, from);
  }
  if ((size & 16) != 0) {
    move_block<16>(to, from);
  }
  if ((size & 8) != 0) {
    move_block<8>(to, from);
  }
  if constexpr (sizeof(void*) < 8) {
    if ((size & 4) != 0) {
      move_block<4>(to, from);
    }
  }
}
#endif

}  // namespace pirn::inline PIRN_ABI::detail
