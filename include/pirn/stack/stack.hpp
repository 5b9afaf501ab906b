// The contract of the stack layer: the stack, the allocators that hand out stacks, and the errors of an allocation.
//
//        +-----------------------+ page boundary
//        | colour: 0 to 2944 B   |  equal stacks would otherwise compete for the same sets of the cache
//        +-----------------------+ top      16-byte aligned; sp starts here
//        | usable, size() bytes  |
//        |          |            |
//        |          v            |
//        +-----------------------+ limit    the lowest byte that may be used
//        | guard                 |  every access faults
//        +-----------------------+
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <type_traits>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Memory that a context runs on: a value that names it and does not own it. Four words; the last two belong to the
/// allocator that handed it out.
class stack {
 public:
  stack() noexcept = default;
  /// Names [limit, top); `top` must be 16-byte aligned. `owner` and `slot` are the allocator's own.
  stack(void* limit, void* top, void* owner = nullptr, std::uintptr_t slot = 0) noexcept
      : limit_(limit), top_(top), owner_(owner), slot_(slot) {}

  /// The lowest usable byte.
  [[nodiscard]] void* limit() const noexcept { return limit_; }
  /// One past the highest usable byte.
  [[nodiscard]] void* top() const noexcept { return top_; }
  /// Usable bytes.
  [[nodiscard]] std::size_t size() const noexcept {
    return static_cast<std::size_t>(static_cast<char*>(top_) - static_cast<char*>(limit_));
  }
  /// Whether `address` lies in the usable part.
  [[nodiscard]] bool contains(const void* address) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= reinterpret_cast<std::uintptr_t>(limit_) && at < reinterpret_cast<std::uintptr_t>(top_);
  }
  /// Makes this name no stack.
  void forget() noexcept { top_ = nullptr; }
  /// Whether it names a stack.
  explicit operator bool() const noexcept { return top_ != nullptr; }

  /// Returns what the allocator gave as `owner`.
  [[nodiscard]] void* owner() const noexcept { return owner_; }
  /// Returns what the allocator gave as `slot`.
  [[nodiscard]] std::uintptr_t slot() const noexcept { return slot_; }

 private:
  void* limit_ = nullptr;
  void* top_ = nullptr;
  void* owner_ = nullptr;
  std::uintptr_t slot_ = 0;
};
static_assert(std::is_trivially_copyable_v<stack> && sizeof(stack) <= 4 * sizeof(void*));

/// Why there is no stack.
enum class stack_error : std::uint8_t {
  none,
  out_of_memory,    ///< the kernel or the heap has no memory
  address_space,    ///< RLIMIT_AS, RLIMIT_DATA, or no free address range
  mapping_limit,    ///< vm.max_map_count
  pool_limit,       ///< the pool's own max_stacks or max_bytes
  guard_refused,    ///< the kind of guard that was asked for cannot be had
  invalid_size,     ///< zero, or larger than any stack may be
  too_small,        ///< no room for the object to be put on it
  no_image_memory,  ///< no memory for the image of a coroutine while another one uses their copy_stack
  stack_in_use,     ///< a coroutine runs on the copy_stack
};

/// Returns a whole sentence that names the limit and says what to do. Static storage.
[[nodiscard]] const char* to_string(stack_error error) noexcept;
/// Returns the category "pirn.stack"; conditions compare equal to std::errc::not_enough_memory, or invalid_argument for
/// invalid_size, or not_supported for guard_refused.
[[nodiscard]] const std::error_category& stack_category() noexcept;
/// Returns the error code of `error`, in that category.
[[nodiscard]] std::error_code make_error_code(stack_error error) noexcept;

/// A stack, or the error of its allocation.
struct stack_result {
  stack value;                            ///< names no stack where there is an error
  stack_error error = stack_error::none;  ///< the reason if there is no stack
  /// Whether there is a stack.
  explicit operator bool() const noexcept { return error == stack_error::none; }
};

/// Hands out stacks: `allocate` returns one of at least `size` usable bytes, `deallocate` takes it back.
template <class A>
concept stack_allocator = requires(A& allocator, std::size_t size, stack value) {
  { allocator.allocate(size) } noexcept -> std::same_as<stack_result>;
  { allocator.deallocate(value) } noexcept;
};

/// The size of a stack where the caller gives no size: 64 KiB.
inline constexpr std::size_t default_stack_size = std::size_t{64} << 10;

/// Returns how many bytes below the top of `value` have been touched since it was made or last gave its memory back, in
/// whole pages: a stack keeps every page that it ever used. Pages that were swapped out do not count, nor do pages
/// below 16 MiB in a row that were never touched. Async-signal-safe; one system call for each MiB.
[[nodiscard]] std::size_t high_water(const stack& value) noexcept;
/// Returns how many bytes of memory `value` holds now. Otherwise as `high_water`.
[[nodiscard]] std::size_t resident_bytes(const stack& value) noexcept;
/// Gives the memory of the whole pages of `value` that lie below `lowest` back to the kernel: for a suspended context
/// that went deeper before. `lowest` is the lowest byte that the context still needs: its sp, less arch::red_zone where
/// the suspended function may be a leaf function. Code that runs there later gets zeroed pages, at a page fault each.
/// The lowest page stays if a coroutine, generator or continuation has its word there by which it finds an overflow.
/// False if the kernel refuses, for instance because the memory is locked. One system call, about 2 us;
/// async-signal-safe.
[[nodiscard]] bool trim(const stack& value, const void* lowest) noexcept;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn

template <>
struct std::is_error_code_enum<pirn::stack_error> : std::true_type {};
