// Locks that are handed over, and that `try_lock` may yet take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/fiber/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Who waits for a lock that is handed over; in its frame, the value of its waiter. Until it runs, `try_lock` of
/// anybody may take what it was handed, and it waits again, in front. Otherwise those who lock one, try the others and
/// back off (std::scoped_lock) might find each one handed to somebody who has not run yet, and will back off in turn,
/// for ever. Where it runs elsewhere it is only woken, and `lock` of anybody may come before it too: else a lock for
/// which threads queue would lie idle for a wake-up each time. But not without end: whoever has lost a lock that often
/// gets it for certain.
class heir {
 public:
  /// By who hands over to `w`, before it is made runnable: whether nobody may take it.
  [[nodiscard]] static bool is_certain(const waiter& w) noexcept {
    auto& to = *static_cast<heir*>(w.value);
    return to.certain_ = is_due(w);
  }
  /// Whether it has lost so often that nobody may.
  [[nodiscard]] static bool is_due(const waiter& w) noexcept { return static_cast<heir*>(w.value)->losses_ >= bound; }
  /// By who hands over to `w` what nobody may take in any case.
  static void make_certain(const waiter& w) noexcept { static_cast<heir*>(w.value)->certain_ = true; }

  /// Suspends the caller in `list`; `lock` is held and then released.
  template <class Lock>
  [[nodiscard]] wake_reason wait(wait_list& list, Lock& lock, const wait_options& options) noexcept {
    return losses_ == 0 ? list.wait(lock, options, this) : list.wait_in_front(lock, options, this);
  }
  [[nodiscard]] wake_reason wait(wait_queue& queue, const wait_options& options) noexcept {
    return wait(queue.list(), queue.own_lock(), options);
  }
  /// Once a wait was notified: whether nobody can have taken the lock.
  [[nodiscard]] bool certain() const noexcept { return certain_; }
  void lost() noexcept {
    if (losses_ < bound) {
      ++losses_;
    }
  }

 private:
  friend class guests;
  static constexpr std::uint8_t bound = 4;

  std::uint8_t losses_ = 0;
  bool certain_ = false;
  std::uint32_t turn_ = 0;  ///< of a reader
};

/// The readers that a lock has let in, and counts, and that have not run. They have waited as heirs, and all of them
/// are sent back where one of those who try takes the lock to write. Under the lock that guards the list of who waits.
class guests {
 public:
  /// Lets those in who were claimed, before they are made runnable. Returns how many they are.
  [[nodiscard]] std::uint32_t let_in(const waiter* chain) noexcept {
    std::uint32_t number = 0;
    for (const waiter* w = chain; w != nullptr; w = w->next) {
      ++number;
      if (!heir::is_certain(*w)) {
        static_cast<heir*>(w->value)->turn_ = turn_;
        ++count_;
      }
    }
    return number;
  }
  /// Wakes those who were claimed, and none of whom is due, to try again: as if they had been sent back at once.
  void turn_away(const waiter* chain) const noexcept {
    for (const waiter* w = chain; w != nullptr; w = w->next) {
      auto& who = *static_cast<heir*>(w->value);
      who.certain_ = false;
      who.turn_ = turn_ - 1;
    }
  }
  /// One who was let in runs. False if it was sent back.
  [[nodiscard]] bool arrives(heir& who) noexcept {
    if (who.certain()) {
      return true;
    }
    if (who.turn_ != turn_) {
      who.lost();
      return false;
    }
    --count_;
    return true;
  }
  /// Whether these readers are guests, all of them.
  [[nodiscard]] bool are_all(std::size_t readers) const noexcept { return count_ != 0 && count_ == readers; }
  void send_back() noexcept {
    count_ = 0;
    ++turn_;
  }

 private:
  std::uint32_t count_ = 0;
  std::uint32_t turn_ = 0;  ///< one more each time they were sent back
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
