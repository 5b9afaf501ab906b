// The places of running stack_swap dispatchers. Their swapped tasks are bodies without separate stacks: everything
// below the place of a dispatcher, on its stack, is theirs. Code that opens a block finds the dispatcher here, and so
// does code that looks for variables of the task that it runs in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/frame_bodies.hpp"
#include "pirn/coro/detail/native_stack.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/detail/platform.hpp"
#include "pirn/stack/detail/values_by_body.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

struct running_dispatcher {
  platform::atomic<arch::word> top{0};  ///< of its place; 0: free
  platform::atomic<bool> nested{false};
  platform::atomic<const values_by_body*> values{nullptr};
};

/// The tops of the places of running dispatchers, and the values of their tasks. If there are more than it has room
/// for, opening a block needs a stack walk. May be called from any thread; each call is one or two atomic operations,
/// and no memory is allocated. The answers are right for dispatchers on the stack of the caller.
class running_dispatchers {
 public:
  /// `nested` says that it may run in a task of another dispatcher. It may then wait with that task, and lie with its
  /// frames elsewhere: code on the stack must not look at it before a walk has shown that it runs.
  PIRN_NOINLINE static void begun(const void* top, const values_by_body& values, bool nested) noexcept {
    const platform::quiet no_steps;
    for (std::size_t i = 0; i < room; ++i) {
      running_dispatcher& each = all_[i];
      arch::word free = 0;
      if (each.top.load(platform::memory_order_relaxed) == 0 &&
          each.top.compare_exchange_strong(free, written, platform::memory_order_acquire)) {
        std::size_t used = used_.load(platform::memory_order_relaxed);
        while (used <= i && !used_.compare_exchange_weak(used, i + 1, platform::memory_order_relaxed)) {
        }
        each.values.store(&values, platform::memory_order_relaxed);
        each.nested.store(nested, platform::memory_order_relaxed);
        each.top.store(reinterpret_cast<arch::word>(top), platform::memory_order_release);
        return;
      }
    }
    frame_bodies::made(nullptr, end_of_memory());
  }
  /// Marks the stack, above the place, as that of this dispatcher: where bodies take turns on one stack, each may run
  /// a dispatcher at the same place, and the mark is copied with the frames of the body. Calls nothing.
  PIRN_ALWAYS_INLINE static void mark(void* top, const values_by_body& values) noexcept {
    *static_cast<const values_by_body* volatile*>(top) = &values;
  }
  PIRN_NOINLINE static void ended(const void* top, const values_by_body& values) noexcept {
    const platform::quiet no_steps;
    for (running_dispatcher& each : all_) {
      if (each.top.load(platform::memory_order_relaxed) == reinterpret_cast<arch::word>(top) &&
          each.values.load(platform::memory_order_relaxed) == &values) {
        each.top.store(0, platform::memory_order_release);
        return;
      }
    }
    frame_bodies::gone(nullptr, end_of_memory());
  }
  /// Returns whether the place of a dispatcher begins above `position` and not above `end`.
  [[nodiscard]] PIRN_NOINLINE static bool any_between(arch::word position, arch::word end) noexcept {
    return between(position, end).count != 0;
  }

  /// Returns whether one may run above the caller's frames on the same stack. `known` is as in `swap_place::may_hold`.
  [[nodiscard]] static bool any_around(const char* floor, native_stack& known) noexcept {
    const auto position = reinterpret_cast<arch::word>(floor);
    constexpr arch::word end_of_all = ~arch::word{0};
    if (!any_between(position, end_of_all)) {
      return false;
    }
    if (!known.holds(floor)) {
      known = native_stack::of_thread();
    }
    const auto end = reinterpret_cast<arch::word>(known.low) + static_cast<arch::word>(known.size);
    return any_between(position, known.holds(floor) ? end : end_of_all);
  }

  struct found {
    unsigned count = 0;
    bool nested = false;                     ///< whether that one may run in a task of another
    const values_by_body* values = nullptr;  ///< of one of them
  };
  /// Returns how many places of dispatchers begin above `position` and not above `end`.
  [[nodiscard]] PIRN_NOINLINE static found between(arch::word position, arch::word end) noexcept {
    const platform::quiet no_steps;
    found result;
    for_each_in(position + 1, end, [&](arch::word, const values_by_body* values, bool nested) {
      ++result.count;
      result.values = values;
      result.nested = nested;
    });
    return result;
  }
  /// Returns the values of the tasks of the dispatcher whose place begins in [low, high), on the caller's stack, or
  /// null. No more than one place may fit into these: a mark stays in memory when its dispatcher has gone or waits.
  [[nodiscard]] PIRN_NOINLINE static const values_by_body* marked_in(arch::word low, arch::word high) noexcept {
    const platform::quiet no_steps;
    const values_by_body* result = nullptr;
    for_each_in(low, high - 1, [&](arch::word top, const values_by_body* values, bool) {
      if (*reinterpret_cast<const values_by_body* const volatile*>(top) == values) {
        result = values;
      }
    });
    return result;
  }
  /// Whether one has ever run.
  [[nodiscard]] static bool any() noexcept { return used_.load(platform::memory_order_relaxed) != 0; }

 private:
  /// Calls `call(top, values, nested)` for each place that begins in [first, last].
  template <class F>
  PIRN_ALWAYS_INLINE static void for_each_in(arch::word first, arch::word last, const F& call) noexcept {
    const std::size_t used = used_.load(platform::memory_order_relaxed);
    for (std::size_t i = 0; i < used; ++i) {
      const running_dispatcher& each = all_[i];
      const arch::word top = each.top.load(platform::memory_order_acquire);
      if (first <= top && top <= last) {
        call(top, each.values.load(platform::memory_order_relaxed), each.nested.load(platform::memory_order_relaxed));
      }
    }
  }
  static const void* end_of_memory() noexcept { return reinterpret_cast<const void*>(~std::uintptr_t{0} << 4); }

  static constexpr arch::word written = 1;  // no top of a place
  static constexpr std::size_t room = 64;

  static inline running_dispatcher all_[room];
  static inline platform::atomic<std::size_t> used_{0};  // only the first ones were ever in use
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
