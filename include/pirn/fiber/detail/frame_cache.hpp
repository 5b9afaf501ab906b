// Where the frames of C++20 coroutines lie.
#pragma once

#include <cstddef>

#include "pirn/detail/abi.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn::inline PIRN_ABI::detail {

/// Memory for the frames of coroutines that one worker keeps and uses again. None under AddressSanitizer, so that a use
/// of a frame that is gone shows.
class frame_cache {
 public:
  frame_cache() = default;
  frame_cache(const frame_cache&) = delete;
  frame_cache& operator=(const frame_cache&) = delete;
  ~frame_cache();

  /// Throws std::bad_alloc. Any thread: from its worker's cache, if it has one.
  [[nodiscard]] static void* allocate(std::size_t size);
  static void deallocate(void* frame, std::size_t size) noexcept;

 private:
  struct unused {
    unused* next;
  };
  static constexpr std::size_t step = 64;
  static constexpr std::size_t lists = 16;  ///< larger frames come from the heap
  static constexpr unsigned most_kept = 256;

  static constexpr std::size_t list_of(std::size_t size) noexcept { return (size - 1) / step; }
  /// The cache of the caller's worker; null if there is none, or if frames of that list are not kept.
  [[nodiscard]] static frame_cache* here_for(std::size_t list) noexcept;

  unused* free_[lists] = {};
  unsigned kept_[lists] = {};
};

}  // namespace pirn::inline PIRN_ABI::detail
