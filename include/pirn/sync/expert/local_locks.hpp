// Recursive, shared and once-only locks for the fibers of one worker: see pirn/sync/expert/local.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "pirn/sync/detail/local_queue.hpp"
#include "pirn/sync/detail/std_forms.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace local {

/// As `pirn::recursive_mutex` with mutex_policy::fair.
class recursive_mutex : public detail::timed_lock<recursive_mutex> {
 public:
  recursive_mutex() noexcept = default;
  recursive_mutex(const recursive_mutex&) = delete;
  recursive_mutex& operator=(const recursive_mutex&) = delete;

  /// Locks the mutex. Suspension point unless the caller is the owner. Not ended by a stop, since std::lock_guard could
  /// not tell.
  void lock() noexcept {
    if (!lock_if(state::free)) {
      static_cast<void>(wait({.stoppable = false, .what = "local recursive_mutex", .object = this}));
    }
  }
  /// As `lock`, unless the deadline passes or the caller is asked to stop first. A mutex that is free or its own is
  /// locked in any case.
  [[nodiscard]] std::expected<void, wait_error> lock(time_limit deadline) noexcept {
    if (lock_if(state::free)) {
      return {};
    }
    return wait({.deadline = deadline, .what = "local recursive_mutex", .object = this});
  }
  /// Tries to lock the mutex. Never suspends.
  [[nodiscard]] bool try_lock() noexcept { return lock_if(state::free) || lock_if(state::handed_off); }
  /// Unlocks; for the owner only (otherwise aborts). Hands off to the longest waiter. Does not suspend.
  void unlock() noexcept {
    waiters_.enter();
    if (owner_ != &detail::current_agent()) {
      waiters_.refuse("unlock() called on a local recursive_mutex that the caller has not locked");
    }
    if (--depth_ == 0) {
      owner_ = nullptr;
      state_ = waiters_.hand_off();
    }
  }

 private:
  using state = detail::local_lock_state;

  [[nodiscard]] bool lock_if(state as_it_is) noexcept {
    waiters_.enter();
    const detail::agent& self = detail::current_agent();
    if (owner_ != &self) {
      if (state_ != as_it_is) {
        return false;
      }
      state_ = state::taken;
      owner_ = &self;
    }
    ++depth_;
    return true;
  }
  std::expected<void, wait_error> wait(const wait_options& options) noexcept {
    auto result = waiters_.wait_to_own(state_, options);
    if (result) {
      owner_ = &detail::current_agent();
      depth_ = 1;
    }
    return result;
  }

  state state_ = state::free;
  const detail::agent* owner_ = nullptr;
  std::uint64_t depth_ = 0;
  detail::local_queue waiters_;
};

/// As `pirn::shared_mutex`: neither side starves the other.
class shared_mutex : public detail::timed_shared_lock<shared_mutex> {
 public:
  shared_mutex() noexcept = default;
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;

  /// Locks to write. Suspension point. Not ended by a stop, since std::lock_guard could not tell.
  void lock() noexcept {
    if (!lock_if_free()) {
      static_cast<void>(writers_.wait_to_own(
          written_, {.stoppable = false, .what = "local shared_mutex, to write", .object = this}, read_by_));
    }
  }
  /// As `lock`, unless the deadline passes or the caller is asked to stop first. A free lock is taken in any case.
  [[nodiscard]] std::expected<void, wait_error> lock(time_limit deadline) noexcept {
    if (lock_if_free()) {
      return {};
    }
    auto result = writers_.wait_to_own(
        written_, {.deadline = deadline, .what = "local shared_mutex, to write", .object = this}, read_by_);
    if (!result && written_ == state::free && writers_.empty()) {
      read_by_ += readers_.admit(admitted_);  // readers may have waited because of this caller
    }
    return result;
  }
  /// Tries to lock to write. Never suspends.
  [[nodiscard]] bool try_lock() noexcept {
    if (lock_if_free()) {
      return true;
    }
    if (written_ == state::free && admitted_.are_all(read_by_)) {
      admitted_.revoke();
      read_by_ = 0;
    } else if (written_ != state::handed_off) {
      return false;
    }
    written_ = state::taken;
    return true;
  }
  /// Unlocks; for the writer only (aborts when no writer owns it). Does not suspend.
  void unlock() noexcept {
    writers_.enter();
    if (written_ != state::taken) {
      writers_.refuse("unlock() called on a local shared_mutex that is not locked for writing");
    }
    read_by_ = readers_.admit(admitted_);
    written_ = read_by_ == 0 ? writers_.hand_off() : state::free;
  }

  /// Locks to read; suspends while a writer owns the lock or waits for it. Not ended by a stop.
  void lock_shared() noexcept {
    if (!read_if_open()) {
      static_cast<void>(wait_to_read({.stoppable = false, .what = "local shared_mutex, to read", .object = this}));
    }
  }
  /// As `lock_shared`, unless the deadline passes or the caller is asked to stop first. A lock that no writer owns or
  /// waits for is taken in any case.
  [[nodiscard]] std::expected<void, wait_error> lock_shared(time_limit deadline) noexcept {
    if (read_if_open()) {
      return {};
    }
    return wait_to_read({.deadline = deadline, .what = "local shared_mutex, to read", .object = this});
  }
  /// Locks to read. False while a writer owns the lock or waits for it, unless no owner has run since the lock was
  /// handed off. Never suspends.
  [[nodiscard]] bool try_lock_shared() noexcept {
    if (read_if_open()) {
      return true;
    }
    if (written_ == state::handed_off) {
      written_ = state::free;
    } else if (written_ == state::taken || !admitted_.are_all(read_by_)) {
      return false;
    }
    ++read_by_;
    return true;
  }
  /// Unlocks; for a reader only (aborts when no reader owns it). Does not suspend.
  void unlock_shared() noexcept {
    writers_.enter();
    if (read_by_ == 0) {
      writers_.refuse("unlock_shared() called on a local shared_mutex that is not locked for reading");
    }
    if (--read_by_ == 0) {
      written_ = writers_.hand_off();
      if (written_ == state::free) {
        read_by_ = readers_.admit(admitted_);
      }
    }
  }

 private:
  using state = detail::local_lock_state;

  [[nodiscard]] bool lock_if_free() noexcept {
    writers_.enter();
    if (written_ != state::free || read_by_ != 0) {
      return false;
    }
    written_ = state::taken;
    return true;
  }
  /// Locks to read if no writer owns the lock or waits for it.
  [[nodiscard]] bool read_if_open() noexcept {
    writers_.enter();
    if (written_ != state::free || !writers_.empty()) {
      return false;
    }
    ++read_by_;
    return true;
  }
  std::expected<void, wait_error> wait_to_read(const wait_options& options) noexcept;

  state written_ = state::free;
  std::size_t read_by_ = 0;
  detail::admitted_readers admitted_;  ///< among `read_by_`
  detail::local_queue writers_;
  detail::local_queue readers_;  ///< hold waiters only while a writer owns the lock or waits
};

/// As `pirn::once_flag`.
class once_flag {
 public:
  constexpr once_flag() noexcept = default;
  once_flag(const once_flag&) = delete;
  once_flag& operator=(const once_flag&) = delete;

  /// Runs `body` unless that was done before, and returns once it is done. One caller at a time tries: the others
  /// suspend. If the body throws, its caller gets the exception and the next caller tries. The deadline, or a stop of
  /// the caller, ends the wait for another caller, not the body.
  template <class F>
  [[nodiscard]] std::expected<void, wait_error> call(F&& body, time_limit deadline) {
    return run(std::forward<F>(body), {.deadline = deadline, .what = "local call_once", .object = this});
  }

 private:
  template <class F, class... Arguments>
  friend void call_once(once_flag& flag, F&& body, Arguments&&... arguments);

  enum class state : std::uint8_t { fresh, running, done };
  struct attempt {
    once_flag& flag;
    state outcome = state::fresh;
    ~attempt() {
      flag.state_ = outcome;
      flag.waiters_.wake_all();  // they check the state: after a failure one of them tries
    }
  };

  template <class F>
  std::expected<void, wait_error> run(F&& body, const wait_options& options) {
    waiters_.enter();
    while (state_ == state::running) {
      if (auto waited = waiters_.wait(options); !waited) {
        return waited;
      }
    }
    if (state_ == state::fresh) {
      state_ = state::running;
      attempt here{*this};
      std::forward<F>(body)();
      here.outcome = state::done;
    }
    return {};
  }

  state state_ = state::fresh;
  detail::local_queue waiters_;
};

/// As `pirn::call_once`.
template <class F, class... Arguments>
void call_once(once_flag& flag, F&& body, Arguments&&... arguments) {
  static_cast<void>(
      flag.run([&] { static_cast<void>(std::invoke(std::forward<F>(body), std::forward<Arguments>(arguments)...)); },
               {.stoppable = false, .what = "local call_once", .object = &flag}));
}

}  // namespace local
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
