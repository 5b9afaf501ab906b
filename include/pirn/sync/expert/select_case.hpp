// The interface by which `select` waits for a primitive. Included by select.hpp.
#pragma once

#include <cstdint>

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/fiber/expert/wait_set.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// The interface of a case to select. Made by `receive`, `send`, `wait` and `until`, in the call of select only.
class select_case {
 public:
  /// The outcome of an attempt.
  enum class state : std::uint8_t { must_wait, done, closed };

  /// A case that waits in `list`, which `lock` guards. The waiter there gets `value`.
  select_case(platform::spinlock& lock, wait_list& list, void* value = nullptr) noexcept : entry{&lock, &list} {
    entry.node.value = value;
  }
  /// As the other, in a list of the fibers of one worker, `home`.
  select_case(const detail::one_worker& home, wait_list& list, void* value = nullptr) noexcept
      : entry{nullptr, &list, &home} {
    entry.node.value = value;
  }
  /// A case that is ready when a point of time has come.
  explicit select_case(platform::time_point when) noexcept : deadline(when), entry{nullptr, nullptr} {}
  select_case(const select_case&) = delete;
  select_case& operator=(const select_case&) = delete;

  /// With the lock held: does what the case says if that need not wait. Otherwise leaves everything such that the list
  /// may be entered. `woken` is a chain to be made runnable after the lock is released, also after an exception.
  virtual state attempt(waiter*& /*woken*/) { return state::must_wait; }
  /// After the waiter was claimed: returns whether the waker did what the case says. If not, the case must be attempted
  /// again.
  [[nodiscard]] virtual bool settled() const noexcept { return true; }

  const time_limit deadline = platform::never;  ///< used by `until`
  wait_entry entry;                             ///< unused by `until`

 protected:
  ~select_case() = default;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
