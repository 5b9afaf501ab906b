// The parts of a scope: its children, their exceptions, and the interruption of its opener.
#pragma once

#include <cstddef>
#include <exception>
#include <vector>

#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/fiber/stop.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Counts the children of a scope that still run, and wakes its opener.
class scope_children {
 public:
  /// Wakes the opener also when as few as `wake_at` children are left.
  explicit scope_children(std::size_t wake_at = 0) noexcept : wake_at_(wake_at) {}

  [[nodiscard]] std::size_t wake_at() const noexcept { return wake_at_; }
  [[nodiscard]] bool any() const noexcept { return running_.load(platform::memory_order_relaxed) != 0; }
  void add() noexcept { running_.fetch_add(1, platform::memory_order_relaxed); }
  /// Called when the body of a child has ended.
  void leave() noexcept;
  /// Suspends until at most `left` children are left. `stops` names the scope in the search for deadlocks.
  void wait_for(std::size_t left, const stop_list& stops) noexcept;

 private:
  std::size_t wake_at_;
  platform::atomic<std::size_t> running_{0};  ///< reaches wake_at_ and below only under the queue's lock
  wait_queue done_;
};

/// The exceptions of the children of a scope since its last join.
class scope_exceptions {
 public:
  /// Keeps `what` if it is the first. True if it was.
  bool keep_first(const std::exception_ptr& what) noexcept;
  /// Keeps exceptions that came later, or with others. Throws std::bad_alloc.
  void keep(const std::vector<std::exception_ptr>& others);
  /// Rethrows the first exception, with the others attached, if there is one. No child runs.
  void rethrow();
  /// Reports all to the handler of unhandled exceptions. No child runs.
  void report(const agent& opener) noexcept;

 private:
  platform::spinlock lock_;
  std::exception_ptr first_;
  std::vector<std::exception_ptr> others_;
};

/// Ends the waits of the opener when its scope is stopped, unless the scope is away: taken off its opener.
class opener_interruption {
 public:
  void set_away(bool away) noexcept;
  void interrupt(agent& opener, wake_reason why) noexcept;

 private:
  platform::spinlock lock_;
  bool away_ = false;
};

/// Rethrows `first`; `attached_exceptions` will find the others.
[[noreturn]] void rethrow_with(std::exception_ptr first, std::vector<std::exception_ptr> others);

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
