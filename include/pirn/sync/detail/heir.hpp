// Locks that are handed over, and that `try_lock` may yet take.
#pragma once

#include <cstdint>

#include "pirn/fiber/wait_queue.hpp"

namespace pirn::inline PIRN_ABI::detail {

/// Who waits for a lock that is handed over; in its frame, the value of its waiter. Until it runs, `try_lock` of
/// anybody may take what it was handed, and it waits again, in front. Otherwise those who lock one, try the others and
/// back off (std::scoped_lock) might find each one handed to somebody who has not run yet, and will back off in turn,
/// for ever. But not without end: whoever has lost a lock that often gets it for certain.
class heir {
 public:
  /// By who hands over to `w`, before it is made runnable: whether nobody may take it.
  [[nodiscard]] static bool is_certain(const waiter& w) noexcept {
    auto& to = *static_cast<heir*>(w.value);
    return to.certain_ = to.losses_ == bound;
  }

  /// Suspends the caller in `list`; `lock` is held and then released.
  template <class Lock>
  [[nodiscard]] wake_reason wait(wait_list& list, Lock& lock, const wait_options& how) noexcept {
    return losses_ == 0 ? list.wait(lock, how, this) : list.wait_in_front(lock, how, this);
  }
  [[nodiscard]] wake_reason wait(wait_queue& queue, const wait_options& how) noexcept {
    return wait(queue.list(), queue.own_lock(), how);
  }
  /// Once a wait was notified: whether nobody can have taken the lock.
  [[nodiscard]] bool certain() const noexcept { return certain_; }
  void lost() noexcept { ++losses_; }

 private:
  static constexpr std::uint8_t bound = 4;

  std::uint8_t losses_ = 0;
  bool certain_ = false;
};

}  // namespace pirn::inline PIRN_ABI::detail
