// Memory for the frames of C++20 coroutines.
#pragma once

#include <cstddef>
#include <new>

#include "pirn/detail/abi.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Returns the alignment of the frame of the coroutine whose promise's operator new or delete calls this: compilers
/// pass the size only, whatever lies in the frame. Clang knows it once that function has been inlined into the
/// coroutine, which must happen. Elsewhere it follows from the size, of which any alignment of a type in the frame is a
/// divisor: with gcc a frame is a struct.
PIRN_ALWAYS_INLINE std::size_t frame_alignment([[maybe_unused]] std::size_t size) noexcept {
#if defined(__clang__)
  return __builtin_coro_align();
#else
  return size & -size;
#endif
}

/// Memory for the frames of coroutines that one worker keeps and reuses. Keeps nothing under AddressSanitizer, so that
/// it detects a use of a destroyed frame.
class frame_cache {
 public:
  frame_cache() = default;
  frame_cache(const frame_cache&) = delete;
  frame_cache& operator=(const frame_cache&) = delete;
  ~frame_cache();

  /// Returns memory, from the worker's cache if any. Any thread. `alignment` is a power of two. Throws std::bad_alloc.
  [[nodiscard]] static void* allocate(std::size_t size, std::size_t alignment);
  /// Takes back memory that `allocate` returned for this size and alignment.
  static void deallocate(void* frame, std::size_t size, std::size_t alignment) noexcept;

 private:
  struct unused {
    unused* next;
  };
  /// The free frames of one size.
  struct list {
    unused* first = nullptr;
    unsigned kept = 0;
  };
  static constexpr std::size_t step = 64;
  static constexpr std::size_t sizes = 16;  ///< larger frames come from the heap
  static constexpr unsigned max_kept = 256;
  static constexpr std::size_t usual_alignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
  /// For frames with vectors in them; larger alignments come from the heap.
  static constexpr std::size_t wide_alignment = 64;

  static constexpr std::size_t rounded(std::size_t size) noexcept { return (size + step - 1) & ~(step - 1); }
  /// Returns that list of the caller's worker; null without a worker, or if such frames are not kept.
  [[nodiscard]] static list* here_for(std::size_t size, std::size_t alignment) noexcept;
  [[nodiscard]] static void* from_heap(std::size_t size, std::size_t alignment);
  static void to_heap(void* frame, std::size_t alignment) noexcept;

  list usual_[sizes];
  list wide_[sizes];
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
