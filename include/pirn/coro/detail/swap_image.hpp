// The places of images of swapped tasks that take turns on one native stack. Uses neither exceptions nor the C++
// runtime, for compat/usched.h.
//
//      +--------------------------+
//      | frames of run's caller   |
//      +--------------------------+ sp of run
//      | slack, red zone, alignm. |
//      | mark of the dispatcher   |          for running_dispatchers
//      +--------------------------+ top      the dispatching loop begins here
//      | root frame               |          equal for all tasks, so no image holds it
//      +--------------------------+ end      where a line of the cache ends
//      | dispatching loop         |
//      | frames of a swapped      |  image: [end - size, end)
//      | task, down to block      |
//      +--------------------------+ sp
//      | pushed registers,        |
//      | switch zone              |
//      +--------------------------+
//      | up to swap_block - 1     |  dead bytes, so that the size is a multiple of swap_block
//      +--------------------------+ end - size
//      | red zone                 |
//      | frames of the copier     |  below the images of both the saved and the restored task
//      +--------------------------+
//
// Every stack in this picture is one and the same, so it is entered by `transfer_into`, which writes nothing below sp.
// A context that was suspended by `transfer_into` is resumed by `switch_last`: all switches of arch.hpp leave pc, sp
// and fp behind in the same way, and the words that arrive with them are not used here. So the context lies in memory
// that no code on the stack can reach, and the last instructions of a resumption read nothing below the new sp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/context/arch.hpp"
#include "pirn/coro/detail/native_stack.hpp"
#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Images are multiples of this number of bytes, the alignment of a stack: their last move is as wide as the others.
inline constexpr std::size_t swap_block = 16;

/// An address at or below the caller's sp, and not far below it. The caller must not be using its red zone: it has a
/// call in it.
#if defined(__x86_64__) && !defined(__ILP32__)
PIRN_ALWAYS_INLINE char* swap_floor() noexcept {
  char* sp;
  asm volatile("movq %%rsp, %0" : "=r"(sp));
  return sp;
}
#else
PIRN_NOINLINE inline char* swap_floor() noexcept {
  asm volatile("");
  return static_cast<char*>(__builtin_frame_address(0));
}
#endif

/// Bytes that the compiler may push between `swap_floor` and the switch: clang keeps the base register of a frame with
/// an over-aligned local and alloca on the stack while an asm clobbers it.
#if defined(__clang__) && defined(__x86_64__)
inline constexpr std::size_t swap_pushed = 16;
#else
inline constexpr std::size_t swap_pushed = 0;
#endif

/// The place of the images of one dispatcher.
class swap_place {
 public:
  /// Chooses the place below the frames of the caller, whose sp is at or above `floor`.
  void choose(const char* floor) noexcept {
    const arch::word free = reinterpret_cast<arch::word>(floor) - slack - arch::red_zone - mark_bytes - root_bytes;
    end_ = reinterpret_cast<char*>(free & ~arch::word{cache_line - 1});
  }
  /// Chooses the same place as before.
  void choose_end(void* end) noexcept { end_ = static_cast<char*>(end); }
  /// Returns whether the frames above `floor` do not overlap this place.
  [[nodiscard]] bool is_below(const char* floor) const noexcept {
    return reinterpret_cast<arch::word>(top()) + mark_bytes <= reinterpret_cast<arch::word>(floor) - arch::red_zone;
  }
  /// The top of the stack on which a dispatching loop begins.
  [[nodiscard]] void* top() const noexcept { return end_ + root_bytes; }
  [[nodiscard]] PIRN_ALWAYS_INLINE char* end() const noexcept { return end_; }
  /// Size in bytes of the image of a task that is about to be suspended at `floor`, a multiple of swap_block.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::size_t size_at(const char* floor) const noexcept {
    const auto bytes = static_cast<std::size_t>(end_ - floor) + arch::switch_zone + swap_pushed;
    return (bytes + swap_block - 1) & ~(swap_block - 1);
  }
  /// Returns whether a task that runs at `floor` may have its frames here. `known` is the result of an earlier lookup.
  /// It is looked up again if it does not hold `floor`: a main thread's stack may have been allowed to grow.
  [[nodiscard]] PIRN_COLD bool may_hold(const char* floor, native_stack& known) const noexcept {
    if (!known.holds(floor) || !known.holds(end_)) {
      known = native_stack::of_thread();
    }
    // The two may be on a stack that the system does not know.
    return floor < end_ && known.holds(floor) == known.holds(end_);
  }
  /// The highest address at which a stack may begin without touching images of `size` bytes.
  [[nodiscard]] PIRN_ALWAYS_INLINE char* below(std::size_t size) const noexcept { return end_ - size - arch::red_zone; }
  /// As `below(size)`, but without touching the bytes above `floor` either.
  [[nodiscard]] char* below(std::size_t size, char* floor) const noexcept {
    return (end_ - size < floor ? end_ - size : floor) - arch::red_zone;
  }

 private:
  /// How much deeper a later run may be called. The sp of two calls in one function may differ where arguments are
  /// pushed, and the second call may not be inlined where the first is.
  static constexpr std::size_t slack = 1024;
  static constexpr std::size_t mark_bytes = 16;
  static constexpr std::size_t cache_line = 64;
  static constexpr std::size_t root_bytes = arch::root_size & ~std::size_t{15};
  char* end_ = nullptr;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
