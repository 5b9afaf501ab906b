// Finds the variables of the coroutine that the caller runs in, by the caller's stack. Nothing is kept for this in a
// switch. A coroutine on a stack of a pool has a word in what lies at the top of the stack from its creation to its
// end, by which that is recognized. A copied coroutine is the running one of the copy_stack at that place, and a
// swapped task that of a dispatcher whose place begins above the caller on the same stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/body_blocks.hpp"
#include "pirn/context/detail/frame_bodies.hpp"
#include "pirn/context/detail/outermost_frame.hpp"
#include "pirn/coro/detail/local_table.hpp"
#include "pirn/coro/detail/running_dispatchers.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/detail/platform.hpp"
#include "pirn/stack/detail/shared_stacks.hpp"
#include "pirn/stack/detail/values_by_body.hpp"
#include "pirn/stack/stack.hpp"
#include "pirn/stack/this_stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The first part of what lies at the top of a coroutine's stack.
class locals_owner {
 public:
  void* limit;  ///< of the stack

  PIRN_ALWAYS_INLINE explicit locals_owner(void* end) noexcept : limit(end), kind_(lives) {}
  /// Says that the stack has a word at its end.
  PIRN_ALWAYS_INLINE void mark() noexcept { kind_ = lives | has_word_at_end; }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool marked() const noexcept { return (kind_ & has_word_at_end) != 0; }
  /// Whether it has no word at the end of its stack and no variables, and does not show its caller.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool plain() const noexcept { return kind_ == lives; }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool only_marked() const noexcept { return kind_ == (lives | has_word_at_end); }
  /// Says where the body keeps the sp at which the code that has resumed it waits. Holds until `hide_caller`.
  void show_caller(const void* sp) noexcept {
    caller_ = sp;
    kind_ |= shows_caller;
  }
  void hide_caller() noexcept { kind_ &= ~std::uint32_t{shows_caller}; }
  /// Returns where the body keeps that sp; null if it does not say.
  [[nodiscard]] const void* caller() const noexcept { return (kind_ & shows_caller) != 0 ? caller_ : nullptr; }
  /// Must be called before the stack has another use.
  PIRN_ALWAYS_INLINE void gone() noexcept { kind_ = 0; }
  /// Whether this is the owner on the stack with that limit: anything may lie here.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool is_of(const void* end) const noexcept {
    return (kind_ & ~std::uint32_t{has_word_at_end | has_variables | shows_caller}) == lives && limit == end;
  }

  [[nodiscard]] local_table* variables() const noexcept { return (kind_ & has_variables) != 0 ? table_ : nullptr; }
  [[nodiscard]] local_table& made_variables() {
    if (variables() == nullptr) {
      table_ = new local_table;
      kind_ |= has_variables;
    }
    return *table_;
  }
  /// Destroys all variables. A destructor may use older variables, and create new ones.
  PIRN_COLD void end_variables() noexcept {
    if (variables() != nullptr) {
      local_table::end(table_);
      kind_ &= ~std::uint32_t{has_variables};
    }
  }

 private:
  static constexpr std::uint32_t lives = 0x6f776e60;  // by chance nowhere else beside the limit of the same stack
  static constexpr std::uint32_t has_word_at_end = 1;
  static constexpr std::uint32_t has_variables = 2;
  static constexpr std::uint32_t shows_caller = 4;

  std::uint32_t kind_;
  // Each of these only if `kind_` says so.
  local_table* table_;
  const void* caller_;
};

/// Returns the owner that lies at the top of this stack, or null. O(1): the largest body objects are not looked for.
[[nodiscard]] __attribute__((no_sanitize("address", "thread"))) inline locals_owner* owner_on(
    const stack& on) noexcept {
  constexpr arch::word largest = 8192;
  const auto limit = reinterpret_cast<arch::word>(on.limit());
  const arch::word lowest = on.size() > largest ? limit + on.size() - largest : limit;
  arch::word at = (limit + on.size() - sizeof(locals_owner)) & ~arch::word{15};
  for (; at >= lowest; at -= 16) {
    if (auto* const found = reinterpret_cast<locals_owner*>(at); found->is_of(on.limit())) {
      return found;
    }
  }
  return nullptr;
}

/// The body in which code runs, as the owner of variables.
class locals_place {
 public:
  locals_place() noexcept = default;
  explicit locals_place(locals_owner* owner) noexcept : body_(owner) {}
  explicit locals_place(const values_by_body& all) noexcept
      : body_(const_cast<void*>(all.running())), all_(body_ != nullptr ? const_cast<values_by_body*>(&all) : nullptr) {}
  explicit operator bool() const noexcept { return body_ != nullptr; }

  [[nodiscard]] local_table* variables() const noexcept {
    return all_ != nullptr ? static_cast<local_table*>(all_->find(body_)) : owner()->variables();
  }
  [[nodiscard]] local_table& made_variables() const {
    if (all_ == nullptr) {
      return owner()->made_variables();
    }
    local_table* const known = variables();
    return known != nullptr ? *known : add_variables();
  }

 private:
  [[nodiscard]] locals_owner* owner() const noexcept { return static_cast<locals_owner*>(body_); }
  PIRN_COLD local_table& add_variables() const {
    auto made = std::make_unique<local_table>();
    const auto end = [](void* values) noexcept {
      auto* ended = static_cast<local_table*>(values);
      local_table::end(ended);
    };
    if (!all_->add(body_, made.get(), end)) {
      throw std::bad_alloc();
    }
    return *made.release();
  }

  void* body_ = nullptr;
  values_by_body* all_ = nullptr;  // null for the owner on a stack of a pool
};

/// Returns the place of the variables of the caller, where it may be on the stack of another body that lies in a frame
/// of this body's, or in one of several dispatchers. By a walk, which ends at the root of the caller's body.
PIRN_COLD inline locals_place locals_by_walk(arch::word here) noexcept {
  constexpr arch::word largest_root = 64;  // of all instruction sets, with what aligns it
  const outermost_frame last = find_outermost_frame();
  if (!last.is_root()) {
    return {};  // a frame has no unwind tables
  }
  const arch::word root = last.sp;
  if (const auto* const tasks = running_dispatchers::marked_in(root, root + largest_root); tasks != nullptr) {
    return locals_place(*tasks);
  }
  if (const auto shared = shared_stacks::at(here); shared.values != nullptr) {
    const bool here_begins = reinterpret_cast<arch::word>(shared.on.top()) - root <= largest_root;
    return here_begins ? locals_place(*shared.values) : locals_place();
  }
  constexpr arch::word largest_below_owner = 32;  // the root of a body in a frame lies lower
  const stack on = this_stack::bounds();
  locals_owner* const owner = on.limit() != nullptr ? owner_on(on) : nullptr;
  const bool begins = owner != nullptr && reinterpret_cast<arch::word>(owner) - root <= largest_below_owner;
  return begins ? locals_place(owner) : locals_place();
}

/// The stack on which the calling thread has looked last.
struct known_stack {
  arch::word limit = 0;
  arch::word size = 0;
  std::uint64_t forgotten = 0;             ///< shared_stacks::forgotten() at that time
  const values_by_body* copied = nullptr;  ///< of a copy_stack
  locals_owner* owner = nullptr;

  [[nodiscard]] bool holds(arch::word position) const noexcept {
    return position - limit < size && forgotten == shared_stacks::forgotten();
  }
  /// Returns false on memory that pirn did not map, and is no copy_stack.
  PIRN_COLD bool find(arch::word position) noexcept {
    *this = {};
    const auto shared = shared_stacks::at(position);
    const stack on = shared.values != nullptr ? shared.on : this_stack::bounds();
    if (on.limit() == nullptr) {
      return false;
    }
    *this = {reinterpret_cast<arch::word>(on.limit()), on.size(), shared_stacks::forgotten(), shared.values, nullptr};
    return true;
  }
};

/// Returns the place of the variables of the caller; none if the caller is in no coroutine, or in one whose stack no
/// pool has mapped.
PIRN_NOINLINE __attribute__((no_sanitize("address", "thread"))) inline locals_place locals_place_here() noexcept {
  const platform::quiet no_steps;
  const arch::word here = stack_position();
  if (frame_bodies::may_hold(here)) [[unlikely]] {
    return locals_by_walk(here);
  }
  known_stack& known = platform::per_thread<known_stack>::here();
  if (!known.holds(here) && !known.find(here)) [[unlikely]] {
    return {};
  }
  if (running_dispatchers::any()) [[unlikely]] {
    const auto task = running_dispatchers::between(here, known.limit + known.size);
    if (task.count != 0) {
      // A task of an outer dispatcher, a coroutine that was copied in, or the caller of an outer dispatcher may run
      // where a body was that has run another dispatcher, and waits.
      const bool runs = task.count == 1 && !task.nested && known.copied == nullptr;
      return runs ? locals_place(*task.values) : locals_by_walk(here);
    }
  }
  if (known.copied != nullptr) {
    return locals_place(*known.copied);
  }
  // The memory of an owner that has gone may be read, since the caller is on the same stack.
  void* const limit = reinterpret_cast<void*>(known.limit);
  if (known.owner == nullptr || !known.owner->is_of(limit)) [[unlikely]] {
    known.owner = owner_on(stack(limit, reinterpret_cast<void*>(known.limit + known.size)));
  }
  return locals_place(known.owner);
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
