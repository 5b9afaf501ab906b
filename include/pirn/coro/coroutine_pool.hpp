// Reused coroutines: one whose job has ended keeps its stack and waits for the next job. A job takes no stack from a
// pool, and nothing is built for it. The scheme is that of RethinkDB ("Making coroutines fast": reusing coroutines).
//
//   pirn::coroutine_pool pool;
//   auto job = pool.start([&](auto& yield) { send(request); yield(); use(answer); });
//   ...
//   job.resume();
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/stored_peer.hpp"
#include "pirn/coro/detail/coroutine_core.hpp"
#include "pirn/coro/detail/in_flight.hpp"
#include "pirn/coro/detail/pool_core.hpp"
#include "pirn/coro/detail/stack_source.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/detail/exiting.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Starts jobs on coroutines that it keeps. Not thread-safe: use one pool for each OS thread, or one thread at a time.
/// It keeps as many coroutines as there ever were jobs at once, until `trim`. All jobs must have ended or be destroyed
/// before the pool is destroyed; otherwise the program ends with a message.
class coroutine_pool {
 public:
  class job;

  /// The argument of a job, by which it suspends: `yield()` returns at the job's next resume().
  using yield = detail::pool_yield;

  /// Makes a pool whose stacks come from default_stack_pool(), or from `stacks`, which must outlive this.
  explicit coroutine_pool(std::size_t stack_size = default_stack_size)
      : coroutine_pool(default_stack_pool(), stack_size) {}
  explicit coroutine_pool(guarded_pool& stacks, std::size_t stack_size = default_stack_size)
      : stacks_(stacks), stack_size_(stack_size) {}
  coroutine_pool(const coroutine_pool&) = delete;
  coroutine_pool& operator=(const coroutine_pool&) = delete;
  ~coroutine_pool() {
    if (idle() != size_ && !platform::left_to_exit()) {
      detail::fail_contract("a coroutine_pool was destroyed while ", std::uint64_t{size_ - idle()},
                            " of its jobs still existed");
    }
    trim();
  }

  /// Runs `what(yield)` until it first suspends or ends. Rethrows an exception that leaves it. Throws std::system_error
  /// if a new coroutine is needed and there is no stack, and std::bad_alloc.
  template <class What>
    requires std::is_invocable_v<std::decay_t<What>&, yield&>
  PIRN_ALWAYS_INLINE job start(What&& what);

  /// Makes coroutines until `number` of them wait for a job. Each has touched the first page of its stack then, so that
  /// the first jobs find their memory. Throws as `start`, and keeps those that it has made.
  void reserve(std::size_t number) {
    while (idle() < number) {
      put(make());
    }
  }
  /// Destroys idle coroutines until only `keep` of them are left, those that were idle the longest first. Takes time
  /// linear in the number of idle ones.
  void trim(std::size_t keep = 0) noexcept;
  /// Returns the number of coroutines that wait for a job.
  [[nodiscard]] std::size_t idle() const noexcept { return static_cast<std::size_t>(top_ - all_idle_.get()); }
  /// Returns the number of all coroutines.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  using member = detail::pool_coroutine;

  PIRN_ALWAYS_INLINE member* take() {
    if (top_ == all_idle_.get()) [[unlikely]] {
      return make();
    }
    return *--top_;
  }
  PIRN_ALWAYS_INLINE void put(member* unused) noexcept { *top_++ = unused; }
  PIRN_COLD member* make() {
    if (size_ == capacity_) {
      grow();
    }
    const stack_result got = stacks_.allocate(stack_size_);
    if (!got) {
      detail::no_stack(got.error, "pirn: coroutine_pool");
    }
    ++size_;
    return member::make(got.value);
  }
  PIRN_COLD void grow() {
    const std::size_t idle_now = idle();
    const std::size_t capacity = capacity_ != 0 ? 2 * capacity_ : 16;
    auto larger = std::make_unique<member*[]>(capacity);
    std::copy(all_idle_.get(), top_, larger.get());
    all_idle_ = std::move(larger);
    top_ = all_idle_.get() + idle_now;
    capacity_ = capacity;
  }
  /// Puts a member back whose job has not returned.
  PIRN_COLD void cancel(member* suspended) noexcept {
    suspended->cancel();
    put(suspended);
  }
  /// Follows a switch to `one`, from which `to` and `words` have come. If the job has ended, puts the member back,
  /// calls `ended`, and rethrows an exception that has left the job.
  template <class Ended>
  PIRN_ALWAYS_INLINE void switched(member* one, const arch::peer& to, const arch::word (&words)[arch::value_words],
                                   Ended&& ended) {
    if (!arch::is_tagged(to)) {
      one->at = detail::stored_peer(to);
      if (one->running()) {
        __builtin_unreachable();  // the next resume need not test for this
      }
      return;
    }
    one->ended();
    put(one);
    ended();
    if (words[0] != static_cast<arch::word>(detail::last_word::returned)) [[unlikely]] {
      detail::ended_otherwise(words[0], words[1]);
    }
  }

  std::unique_ptr<member*[]> all_idle_;  // the one that became idle last is the last
  member** top_ = nullptr;               // behind that
  std::size_t capacity_ = 0;             // not less than `size_`, so that `put` has room
  std::size_t size_ = 0;
  guarded_pool& stacks_;
  std::size_t stack_size_;
};

/// A job that was started. Move-only. Destroying a suspended job unwinds it, and its coroutine continues with the next
/// job. Moving or destroying a running job ends the program with a message.
class coroutine_pool::job {
 public:
  /// Makes an empty job, which counts as done.
  job() noexcept = default;
  PIRN_ALWAYS_INLINE job(job&& other) noexcept : pool_(other.pool_), on_(other.hand_over()) {}
  job& operator=(job&& other) noexcept {
    if (this != &other) {
      drop();
      pool_ = other.pool_;
      on_ = other.hand_over();
    }
    return *this;
  }
  PIRN_ALWAYS_INLINE ~job() { drop(); }

  /// Runs the job until it suspends or ends. Rethrows an exception that leaves it, after which it is done. Throws
  /// std::logic_error if it is already done.
  PIRN_ALWAYS_INLINE void resume() {
    member* const one = on_;
    if (one == nullptr) [[unlikely]] {
      detail::resumed_after_end();
    }
    arch::peer to = one->at.get();
    if (one->running()) [[unlikely]] {
      detail::resumed_while_running();
    }
    one->at.sp = member::runs;
    arch::word words[arch::value_words];
    detail::leave_indeterminate(words, 0);
    detail::forget(words);
    detail::transfer(to, words, one->sanitizer);
    pool_->switched(one, to, words, [this] { on_ = nullptr; });
  }
  /// Returns whether the job has ended.
  [[nodiscard]] bool done() const noexcept { return on_ == nullptr; }

 private:
  friend class coroutine_pool;
  PIRN_ALWAYS_INLINE job(coroutine_pool* pool, member* on) noexcept : pool_(pool), on_(on) {}

  /// A resume, on its way, looks into the job again when it is back.
  PIRN_ALWAYS_INLINE member* hand_over() noexcept {
    if (on_ != nullptr && on_->running()) [[unlikely]] {
      detail::running_coroutine("moved");
    }
    return std::exchange(on_, nullptr);
  }
  PIRN_ALWAYS_INLINE void drop() noexcept {
    if (on_ != nullptr) [[unlikely]] {
      if (on_->running()) {
        detail::running_coroutine("destroyed");
      }
      pool_->cancel(std::exchange(on_, nullptr));
    }
  }

  coroutine_pool* pool_ = nullptr;
  member* on_ = nullptr;
};

template <class What>
  requires std::is_invocable_v<std::decay_t<What>&, coroutine_pool::yield&>
PIRN_ALWAYS_INLINE coroutine_pool::job coroutine_pool::start(What&& what) {
  member* const one = take();
  arch::peer to;
  arch::word words[arch::value_words];
  detail::pool_job<What>::begin(*one, what, to, words);
  member* suspended = one;
  switched(one, to, words, [&suspended] { suspended = nullptr; });
  return job(this, suspended);
}

inline void coroutine_pool::trim(std::size_t keep) noexcept {
  const std::size_t now = idle();
  const std::size_t surplus = now > keep ? now - keep : 0;
  for (std::size_t i = 0; i < surplus; ++i) {
    const stack unused = all_idle_[i]->memory;
    all_idle_[i]->gone();
    stacks_.deallocate(unused);
  }
  std::copy(all_idle_.get() + surplus, top_, all_idle_.get());
  top_ -= surplus;
  size_ -= surplus;
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
