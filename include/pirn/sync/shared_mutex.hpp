// A lock that many readers share or one writer owns.
#pragma once

#include <cstdint>

#include "pirn/fiber/detail/current_fiber.hpp"
#include "pirn/sync/detail/domain.hpp"
#include "pirn/sync/detail/lock_waiter.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

template <class Domain>
class basic_shared_mutex : Domain::owner_mark, public timed_shared_lock<basic_shared_mutex<Domain>> {
 public:
  basic_shared_mutex() noexcept = default;
  basic_shared_mutex(const basic_shared_mutex&) = delete;
  basic_shared_mutex& operator=(const basic_shared_mutex&) = delete;

  /// Locks to write. Suspension point. Not ended by a stop, since std::lock_guard could not tell.
  PIRN_ALWAYS_INLINE void lock() noexcept {
    if (!lock_if_free()) [[unlikely]] {
      [[maybe_unused]] const auto locked = lock_slow({.stoppable = false});
    }
  }
  /// As `lock`, unless the deadline passes or the caller is asked to stop first. A free lock is taken in any case.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> lock(time_limit deadline) noexcept {
    if (lock_if_free()) [[likely]] {
      return {};
    }
    return lock_slow({.deadline = deadline});
  }
  /// Tries to lock to write. Also takes a lock handed off to a writer, or to readers, if none of them has run since, as
  /// that of `mutex`. Never suspends.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool try_lock() noexcept {
    return lock_if_free() || take_handed_off() || take_from_admitted();
  }
  /// Unlocks; for the writer only (aborts when no writer owns it). Does not suspend.
  PIRN_ALWAYS_INLINE void unlock() noexcept {
    Domain::enter(writers_);
    this->forget_owner();
    std::uint32_t expected = writer;
    if (!word_.compare_exchange_strong(expected, 0, platform::memory_order_release, platform::memory_order_relaxed))
        [[unlikely]] {
      unlock_slow();
    }
  }

  /// Locks to read; suspends while a writer owns the lock or waits for it. Not ended by a stop.
  PIRN_ALWAYS_INLINE void lock_shared() noexcept {
    if (!read_if_open()) [[unlikely]] {
      [[maybe_unused]] const auto locked = lock_shared_slow({.stoppable = false});
    }
  }
  /// As `lock_shared`, unless the deadline passes or the caller is asked to stop first. A lock that no writer owns or
  /// waits for is taken in any case.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> lock_shared(time_limit deadline) noexcept {
    if (read_if_open()) [[likely]] {
      return {};
    }
    return lock_shared_slow({.deadline = deadline});
  }
  /// Locks to read. False while a writer owns the lock or waits for it, unless no owner has run since the lock was
  /// handed off: then that writer waits again, as with `try_lock`, or the caller joins those readers. Never suspends.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool try_lock_shared() noexcept { return read_if_open() || try_lock_shared_slow(); }
  /// Unlocks; for a reader only (aborts when no reader owns it). Does not suspend.
  PIRN_ALWAYS_INLINE void unlock_shared() noexcept {
    Domain::enter(writers_);
    std::uint32_t seen = word_.load(platform::memory_order_relaxed);
    while ((seen & contended) == 0 && seen >= reader) [[likely]] {
      // Release: the next writer comes after the reads.
      if (word_.compare_exchange_weak(seen, seen - reader, platform::memory_order_release,
                                      platform::memory_order_relaxed)) [[likely]] {
        return;
      }
    }
    unlock_shared_slow();
  }

 private:
  // The word: `writer` if a writer owns the lock, else `reader` times the number of readers; and `contended` while
  // callers may wait, except where a woken waiter is about to set it. While `contended` is set the word changes under
  // the lock of the queue only, except for `handed_off`: the caller that then takes the lock clears it.
  static constexpr std::uint32_t writer = 1;
  static constexpr std::uint32_t contended = 2;
  static constexpr std::uint32_t handed_off = 4;  ///< `writer` stands for a waiter that has not run yet
  static constexpr std::uint32_t reader = 8;

  [[nodiscard]] PIRN_ALWAYS_INLINE bool lock_if_free() noexcept {
    Domain::enter(writers_);
    std::uint32_t expected = 0;
    if (!word_.compare_exchange_strong(expected, writer, platform::memory_order_acquire,
                                       platform::memory_order_relaxed)) [[unlikely]] {
      return false;
    }
    this->mark_owner();
    return true;
  }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool read_if_open() noexcept {
    Domain::enter(writers_);
    std::uint32_t seen = word_.load(platform::memory_order_relaxed);
    while ((seen & (writer | contended)) == 0) {
      if (word_.compare_exchange_weak(seen, seen + reader, platform::memory_order_acquire,
                                      platform::memory_order_relaxed)) [[likely]] {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] PIRN_DEFINED_ONCE bool take_handed_off() noexcept;
  [[nodiscard]] PIRN_DEFINED_ONCE bool take_from_admitted() noexcept;
  [[nodiscard]] PIRN_DEFINED_ONCE bool try_lock_shared_slow() noexcept;
  PIRN_DEFINED_ONCE std::expected<void, wait_error> lock_slow(wait_options&& options) noexcept;
  PIRN_DEFINED_ONCE std::expected<void, wait_error> lock_shared_slow(wait_options&& options) noexcept;
  PIRN_DEFINED_ONCE void unlock_slow() noexcept;
  PIRN_DEFINED_ONCE void unlock_shared_slow() noexcept;
  [[nodiscard]] PIRN_DEFINED_ONCE waiter* admit_readers() noexcept;
  PIRN_DEFINED_ONCE void admit(const waiter* chain, std::uint32_t readers) noexcept;
  [[nodiscard]] PIRN_DEFINED_ONCE waiter* admit_writer() noexcept;
  [[nodiscard]] PIRN_DEFINED_ONCE std::uint32_t contention() const noexcept;

  typename Domain::template atomic<std::uint32_t> word_{0};
  admitted_readers admitted_;  ///< among the readers in the word; under the lock of the queue, like the lists
  wait_list readers_;          ///< hold waiters only while a writer owns the lock or is in the queue
  typename Domain::queue writers_;
};

extern template class basic_shared_mutex<shared_domain>;

}  // namespace detail

/// As std::shared_mutex, for std::shared_lock, std::unique_lock and the like; not recursive. No caller starves: a
/// reader waits while a writer does. A writer that unlocks admits all waiting readers, and the last of these admits the
/// longest waiting writer (phase-fair: Brandenburg and Anderson 2010, "Spin-based reader-writer synchronization for
/// multiprocessor real-time systems"). A waiter that does not run on the unlocking worker is only woken, and may be
/// bypassed until it runs, four times at most, as with `mutex`. A reader that locks again while it holds the lock may
/// wait for itself. Fibers of any worker and plain threads share it. An owner that knows that no other caller will use
/// it may unlock and destroy it.
class shared_mutex : public detail::basic_shared_mutex<detail::shared_domain> {};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
