// THE contract of the stack layer: what a stack is, what hands one out, and why it may not.
//
//        +-----------------------+ page boundary
//        | colour: 0 to 2944 B   |  like stacks would otherwise compete for the same sets of the cache
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
  /// Names no stack any more.
  void forget() noexcept { top_ = nullptr; }
  explicit operator bool() const noexcept { return top_ != nullptr; }

  [[nodiscard]] void* owner() const noexcept { return owner_; }
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
  too_small,        ///< no room for what was to be put on it
  no_image_memory,  ///< what a coroutine needs to keep while another one uses their copy_stack cannot be allocated
  stack_in_use,     ///< a coroutine runs on the copy_stack
};

/// A whole sentence that names the limit and says what to do. Static storage.
[[nodiscard]] const char* to_string(stack_error error) noexcept;
/// The category "pirn.stack"; conditions compare equal to std::errc::not_enough_memory, or invalid_argument for
/// invalid_size, or not_supported for guard_refused.
[[nodiscard]] const std::error_category& stack_category() noexcept;
[[nodiscard]] std::error_code make_error_code(stack_error error) noexcept;

/// A stack, or the reason why there is none.
struct stack_result {
  stack value;
  stack_error error = stack_error::none;
  explicit operator bool() const noexcept { return error == stack_error::none; }
};

/// What hands out stacks: `allocate` gives one of at least `size` usable bytes, `deallocate` takes back what
/// `allocate` gave.
template <class A>
concept stack_allocator = requires(A& allocator, std::size_t size, stack value) {
  { allocator.allocate(size) } noexcept -> std::same_as<stack_result>;
  { allocator.deallocate(value) } noexcept;
};

/// What a stack is given when nobody says how large: 64 KiB.
inline constexpr std::size_t default_stack_size = std::size_t{64} << 10;

/// How many bytes below the top of `value` have been touched since it was made or last gave its memory back, in whole
/// pages: a stack keeps every page that it ever used. Pages that were swapped out do not count, nor does what
/// lies below 16 MiB in a row that were never touched. Async-signal-safe; one system call for each MiB.
[[nodiscard]] std::size_t high_water(const stack& value) noexcept;
/// How many bytes of memory `value` holds now. Otherwise as `high_water`.
[[nodiscard]] std::size_t resident_bytes(const stack& value) noexcept;
/// Gives the memory of the whole pages of `value` that lie below `lowest` back to the kernel: for a suspended context
/// that went deeper before. `lowest` is the lowest byte that it still needs: its sp, less arch::red_zone where a leaf
/// function may be the one that is suspended. Whoever runs on it later gets zeroed pages, at a page fault each. False
/// if the kernel refuses, for instance because the memory is locked. One system call, about 2 us; async-signal-safe.
[[nodiscard]] bool trim(const stack& value, const void* lowest) noexcept;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn

template <>
struct std::is_error_code_enum<pirn::stack_error> : std::true_type {};
