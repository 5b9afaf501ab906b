// An event: a flag that fibers and threads wait for.
#pragma once

#include <cstdint>

#include "pirn/sync/detail/domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// How an event that was set is reset.
enum class event_reset : std::uint8_t {
  manual,     ///< by `reset` only: once set, all callers pass
  automatic,  ///< by the first caller that passes: each `set` lets one pass, and setting it twice counts once
};

namespace detail {

template <class Source>
class event_case;

template <class Domain>
class basic_event {
 public:
  /// Begins unset.
  constexpr basic_event() noexcept : basic_event(event_reset::manual) {}
  constexpr explicit basic_event(event_reset reset, wait_policy waiting = {}) noexcept
      : reset_(reset), rule_(waiting) {}
  constexpr explicit basic_event(wait_policy waiting) noexcept : basic_event(event_reset::manual, waiting) {}
  basic_event(const basic_event&) = delete;
  basic_event& operator=(const basic_event&) = delete;

  /// Sets the event. Wakes all waiters; with automatic reset only the longest waiter, which then takes the event.
  /// Callers that pass see what was done before. Does not suspend, unless its policy is `switch_over`. O(waiters
  /// woken).
  PIRN_ALWAYS_INLINE void set() noexcept {
    Domain::enter(waiters_);
    if constexpr (Domain::is_local) {
      set_local();
    } else {
      std::uint32_t seen = word_.load(platform::memory_order_relaxed);
      while (seen != waited) [[likely]] {
        // Written even if it is set already: a caller that is about to reset it must see what this caller did.
        if (word_.compare_exchange_weak(seen, signalled, platform::memory_order_release,
                                        platform::memory_order_relaxed)) [[likely]] {
          return;
        }
      }
      set_slow();
    }
  }
  /// Resets the event, if it is set. Actions before the `set` are visible afterwards. Never suspends.
  void reset() noexcept {
    Domain::enter(waiters_);
    std::uint32_t expected = signalled;
    word_.compare_exchange_strong(expected, clear, platform::memory_order_acquire, platform::memory_order_relaxed);
  }
  /// Returns whether it is set at this moment.
  [[nodiscard]] bool is_set() const noexcept {
    Domain::enter(waiters_);
    return word_.load(platform::memory_order_acquire) == signalled;
  }

  /// Returns whether the event is set; automatic reset then resets it. Never suspends.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool try_wait() noexcept {
    if (reset_ == event_reset::manual) {
      return is_set();
    }
    Domain::enter(waiters_);
    std::uint32_t expected = signalled;
    return word_.compare_exchange_strong(expected, clear, platform::memory_order_acquire,
                                         platform::memory_order_relaxed);
  }
  /// As `try_wait`, but suspends until it is set, the deadline passes or the caller is asked to stop.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> wait(
      time_limit deadline = platform::never) noexcept {
    if (try_wait()) [[likely]] {
      return {};
    }
    return wait_slow(deadline);
  }

 private:
  template <class Source>
  friend class event_case;

  // The word is one of these. It changes to and from `waited` under the queue's lock only. The word of a local event is
  // never `waited`: no other fiber changes the queue while the caller looks into it.
  static constexpr std::uint32_t clear = 0;
  static constexpr std::uint32_t signalled = 1;
  static constexpr std::uint32_t waited = 2;  ///< clear, and the queue may hold waiters

  PIRN_ALWAYS_INLINE void set_local() noexcept {
    if (reset_ == event_reset::manual) {
      word_.store(signalled);
      if (!waiters_.empty()) {
        wait_list::schedule_all(waiters_.claim_all(), rule_.wake());
      }
    } else if (waiter* const next = waiters_.empty() ? nullptr : rule_.claim_next(waiters_.list())) {
      schedule(*next->wake.agent(), rule_.where());
    } else {
      word_.store(signalled);
    }
  }
  PIRN_DEFINED_ONCE void set_slow() noexcept
    requires(!Domain::is_local);
  /// With the queue's lock held: passes, or marks the word so that the next `set` looks into the queue.
  PIRN_DEFINED_ONCE bool pass_or_mark() noexcept;
  PIRN_DEFINED_ONCE std::expected<void, wait_error> wait_slow(platform::time_point deadline) noexcept;

  typename Domain::template atomic<std::uint32_t> word_{clear};
  const event_reset reset_;
  waiting_rule rule_;
  typename Domain::queue waiters_;
};

extern template class basic_event<shared_domain>;

}  // namespace detail

/// A flag to wait for. Fibers of any worker and plain threads share it. A caller that knows that no further call will
/// come may destroy it after a successful wait, even while the `set` has not returned yet.
class event : public detail::basic_event<detail::shared_domain> {
 public:
  using basic_event::basic_event;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
