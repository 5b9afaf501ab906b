// One wait.
#pragma once

#include <concepts>
#include <new>
#include <type_traits>

#include "pirn/fiber/expert/timer.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// One wait of an agent, from the moment when it begins until the agent runs again. Lies on the waiter's stack, or in
/// the frame of an awaiter. `suspend` is the only function that begins it. The links to what may wake it are its
/// entries: one `list_entry`, the entries of a `wait_set`, or a `direct_entry`.
struct wait_record {
  agent& self;
  const wait_options& options;
  wait_kind kind;
  std::uint64_t epoch;

  /// Returns the handle by which the entries end this wait.
  [[nodiscard]] PIRN_ALWAYS_INLINE waker handle() const noexcept { return {self, epoch}; }
};

/// The links between a wait and what may wake it, however many there are.
template <class T>
concept wait_entries = requires(T& entries, const waker& handle, agent& self) {
  /// Adds the waiter, which still runs: nothing can claim it before it is published, since the caller holds the locks.
  entries.append(handle);
  /// Returns the function that makes the waiter visible to its wakers, by releasing the locks. That runs once the
  /// waiter is switched out, or on its worker.
  entries.publisher()();
  /// Called instead of both if a stop refuses the wait: releases the locks.
  entries.unlock_unpublished();
  /// Called when the waiter runs again: removes what is left of it from the lists. Returns why the wait has ended.
  { entries.remove_after_wait(self) } -> std::same_as<wake_reason>;
};

/// Says of an entry that neither a stop nor a deadline ends its wait.
inline constexpr std::true_type only_notified{};

/// Memory for a waiter, which is made once the wait has begun: nothing of it is written twice.
struct waiter_place {
  waiter_place() noexcept {}
  union {
    waiter node;
  };
};

/// The entry of a wait in one list, whose lock the waiter holds.
template <class Lock, bool OnlyNotified = false>
struct list_entry {
  wait_list& list;
  Lock& lock;
  waiter_place& place;  ///< apart from the entry, which then needs no memory
  void* value = nullptr;
  placement where = placement::back;

  PIRN_ALWAYS_INLINE void append(const waker& handle) const noexcept {
    auto* const node = ::new (static_cast<void*>(&place.node)) waiter{.wake = handle, .value = value};
    where == placement::back ? list.append(*node) : list.prepend(*node);
  }
  [[nodiscard]] PIRN_ALWAYS_INLINE auto publisher() const noexcept {
    return [&to = lock] { to.unlock(); };
  }
  PIRN_ALWAYS_INLINE void unlock_unpublished() const noexcept { lock.unlock(); }
  [[nodiscard]] PIRN_ALWAYS_INLINE wake_reason remove_after_wait(const agent& self) const noexcept {
    if (OnlyNotified || place.node.claimed) {
      return wake_reason::notified;
    }
    list.remove_after_wait(lock, place.node);
    return self.reason();
  }
};

/// The entry of a wait that is in no list, because its waker knows it otherwise: `append(handle)` and `publish()` say
/// how.
template <class Append, class Publish, class OnlyNotified = std::false_type>
struct direct_entry {
  [[no_unique_address]] Append append;
  [[no_unique_address]] Publish publish;
  [[no_unique_address]] OnlyNotified certain{};
  [[nodiscard]] PIRN_ALWAYS_INLINE Publish publisher() const noexcept { return publish; }
  void unlock_unpublished() const noexcept {}
  PIRN_ALWAYS_INLINE static wake_reason remove_after_wait(const agent& self) noexcept {
    return OnlyNotified::value ? wake_reason::notified : self.reason();
  }
};
/// For a direct_entry.
struct does_nothing {
  PIRN_ALWAYS_INLINE void operator()() const noexcept {}
  PIRN_ALWAYS_INLINE void operator()(const waker& /*handle*/) const noexcept {}
};
/// The entry of a wait that only its deadline or a stop ends.
using no_entry = direct_entry<does_nothing, does_nothing>;

/// The publisher of a wait as an action that the next context runs on behalf of the waiter.
template <class Publisher>
struct publish_action : post_switch_action {
  explicit publish_action(const Publisher& by) noexcept
      : post_switch_action{[](post_switch_action* own) noexcept { static_cast<publish_action*>(own)->publish(); }},
        publish(by) {}
  [[no_unique_address]] Publisher publish;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
