// Memory for the control blocks of fibers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "pirn/fiber/detail/control.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Memory for the control blocks of the whole process, all of one size. A chunk is never given back, so code that lists
/// the fibers (a signal handler, a debugger) may look at every block at any time; no list of them is kept.
struct block_chunk {
  /// Three cache lines: two for the control block proper and a callable of up to three words, the third for larger
  /// ones. A sanitizer needs room for its state of a fiber.
  static constexpr std::size_t block_bytes = std::is_empty_v<sanitizer_state> ? 192 : 256;
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t blocks_in_one = 333;  // with the rest, a little less than 64 KiB

  /// Takes up to `wanted` blocks; none if there is no memory. Any thread.
  static std::uint32_t take(void** out, std::uint32_t wanted) noexcept;
  static void give(void* const* blocks, std::uint32_t number) noexcept;
  [[nodiscard]] static block_chunk* newest() noexcept;

  /// Calls `visit(const fiber_control&)` for each fiber of `owner` that has not ended. Only on the owner's thread,
  /// where it may interrupt anything.
  template <class Visit>
  static void for_each(const worker& owner, Visit visit) {
    for (const block_chunk* chunk = newest(); chunk != nullptr; chunk = chunk->next) {
      for (const auto& place : chunk->blocks) {
        const auto& f = *reinterpret_cast<const fiber_control*>(place);
        if (f.home() == &owner && f.lives()) {
          visit(f);
        }
      }
    }
  }

  block_chunk* next;
  alignas(alignment) std::byte blocks[blocks_in_one][block_bytes];
  std::uint32_t notes[blocks_in_one];  ///< for each block, by its worker's `stack_trimmer`
};

/// Blocks kept by one worker, the only caller. The block used last is used next, while it is in the processor's cache.
class block_cache {
 public:
  block_cache() = default;
  block_cache(const block_cache&) = delete;
  block_cache& operator=(const block_cache&) = delete;
  ~block_cache() { block_chunk::give(blocks_.get(), count_); }

  [[nodiscard]] PIRN_ALWAYS_INLINE bool has_one() const noexcept { return count_ != 0; }
  /// Fetches some if it has no block. False if there is no memory.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool get_one() noexcept { return count_ != 0 || refill(); }
  /// Returns a block, or null if there is no memory.
  [[nodiscard]] PIRN_ALWAYS_INLINE void* allocate() noexcept {
    if (!get_one()) [[unlikely]] {
      return nullptr;
    }
    return blocks_[--count_];
  }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool has_room() const noexcept { return count_ != capacity; }
  PIRN_ALWAYS_INLINE void deallocate(void* block) noexcept {
    if (!has_room()) [[unlikely]] {
      spill();
    }
    deallocate_in_room(block);
  }
  /// As `deallocate`, if there `has_room`.
  PIRN_ALWAYS_INLINE void deallocate_in_room(void* block) noexcept { blocks_[count_++] = block; }

 private:
  /// Almost nothing under a sanitizer, so that it detects a use of a destroyed fiber.
  static constexpr std::uint32_t capacity = std::is_empty_v<sanitizer_state> ? 1024 : 1;
  PIRN_NOINLINE bool refill() noexcept;
  PIRN_NOINLINE void spill() noexcept;

  std::uint32_t count_ = 0;
  std::unique_ptr<void*[]> blocks_ = std::make_unique<void*[]>(capacity);
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
