// Reused coroutines: one whose job has ended waits in a loop for the next job. A job costs a message, not a stack. The
// scheme is that of RethinkDB ("Making coroutines fast": reusing coroutines).
//
//   pirn::coroutine_pool pool;
//   auto job = pool.start([&](auto& yield) { send(request); yield(); use(answer); });
//   ...
//   job.resume();
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "pirn/coro/coroutine.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/detail/exiting.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Starts jobs on coroutines that it keeps. Not thread-safe: use one pool for each OS thread, or one thread at a time.
/// It keeps as many coroutines as there ever were jobs at once, until `trim`. All jobs must have ended or be destroyed
/// before the pool is destroyed; otherwise the program ends with a message.
class coroutine_pool {
  struct message;
  using loop = coroutine<bool(message*)>;
  struct member;

 public:
  class job;

  /// The argument of a job, by which it suspends.
  class yield : public detail::coroutine_locals {
   public:
    /// Suspends the job until its next resume(). Otherwise as coroutine::yield.
    PIRN_ALWAYS_INLINE void operator()() { to_(false); }

   private:
    friend class coroutine_pool;
    explicit yield(loop::yield& to) noexcept : to_(to) {}
    loop::yield& to_;
  };

  /// Makes a pool whose stacks come from default_stack_pool(), or from `stacks`, which must outlive this.
  explicit coroutine_pool(std::size_t stack_size = default_stack_size)
      : coroutine_pool(default_stack_pool(), stack_size) {}
  explicit coroutine_pool(guarded_pool& stacks, std::size_t stack_size = default_stack_size)
      : stacks_(stacks), stack_size_(stack_size) {}
  coroutine_pool(const coroutine_pool&) = delete;
  coroutine_pool& operator=(const coroutine_pool&) = delete;
  ~coroutine_pool() {
    if (idle_count_ != all_.size() && !platform::left_to_exit()) {
      detail::fail_contract("a coroutine_pool was destroyed while ", std::uint64_t{all_.size() - idle_count_},
                            " of its jobs still existed");
    }
  }

  /// Runs `what(yield)` until it first suspends or ends. Rethrows an exception that leaves it. Throws std::system_error
  /// if a new coroutine is needed and there is no stack.
  template <class What>
    requires std::is_invocable_v<std::decay_t<What>&, yield&>
  PIRN_ALWAYS_INLINE job start(What&& what);

  /// Destroys idle coroutines until only `keep` of them are left. Takes time linear in their number.
  void trim(std::size_t keep = 0);
  /// Returns the number of coroutines that wait for a job.
  [[nodiscard]] std::size_t idle() const noexcept { return idle_count_; }
  /// Returns the number of all coroutines.
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

 private:
  struct message {
    void (*run)(message& self, loop::yield& to);
  };
  template <class What>
  struct message_of : message {
    explicit message_of(What& job) noexcept : message{&call}, what(job) {}
    What& what;
    static void call(message& self, loop::yield& to) {
      std::decay_t<What> mine(std::forward<What>(static_cast<message_of&>(self).what));  // now on the coroutine's stack
      yield mine_too(to);
      mine(mine_too);
    }
  };
  struct run_loop {
    bool operator()(loop::yield& to, message* next) const {
      for (;;) {
        next->run(*next, to);
        next = to(true);
      }
    }
  };
  struct member {
    member(guarded_pool& stacks, std::size_t size) : runs(stacks, size, run_loop{}) {}
    loop runs;
    member* next_idle = nullptr;
    bool surplus = false;
  };

  PIRN_ALWAYS_INLINE member* take() {
    if (idle_ == nullptr) [[unlikely]] {
      add();
    }
    --idle_count_;
    return std::exchange(idle_, idle_->next_idle);
  }
  PIRN_ALWAYS_INLINE void put(member* unused) noexcept {
    unused->next_idle = std::exchange(idle_, unused);
    ++idle_count_;
  }
  PIRN_NOINLINE void add() {
    all_.push_back(std::make_unique<member>(stacks_, stack_size_));
    put(all_.back().get());
  }
  /// Takes back a member whose job did not return.
  PIRN_NOINLINE void put_back(member* interrupted) noexcept {
    interrupted->runs.reset(run_loop{});
    put(interrupted);
  }
  /// Resumes `one`, which becomes null, and restores it when its job has ended.
  PIRN_ALWAYS_INLINE void step(member*& one, message* what) {
    struct take_back {
      coroutine_pool& pool;
      member*& of;
      bool interrupted = true;
      PIRN_ALWAYS_INLINE ~take_back() {
        if (interrupted) [[unlikely]] {
          pool.put_back(std::exchange(of, nullptr));
        }
      }
    } guard{*this, one};
    const bool ended = one->runs.resume(what);
    guard.interrupted = false;
    if (ended) {
      put(std::exchange(one, nullptr));
    }
  }

  member* idle_ = nullptr;
  std::size_t idle_count_ = 0;
  std::vector<std::unique_ptr<member>> all_;
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
    if (on_ == nullptr) [[unlikely]] {
      detail::resumed_after_end();
    }
    if (on_->runs.running()) [[unlikely]] {
      detail::resumed_while_running();
    }
    pool_->step(on_, nullptr);
  }
  /// Returns whether the job has ended.
  [[nodiscard]] bool done() const noexcept { return on_ == nullptr; }

 private:
  friend class coroutine_pool;
  PIRN_ALWAYS_INLINE job(coroutine_pool* pool, member* on) noexcept : pool_(pool), on_(on) {}

  /// A resume, on its way, looks into the job again when it is back.
  PIRN_ALWAYS_INLINE member* hand_over() noexcept {
    if (on_ != nullptr && on_->runs.running()) [[unlikely]] {
      detail::running_coroutine("moved");
    }
    return std::exchange(on_, nullptr);
  }
  PIRN_ALWAYS_INLINE void drop() noexcept {
    if (on_ != nullptr) [[unlikely]] {
      if (on_->runs.running()) {
        detail::running_coroutine("destroyed");
      }
      pool_->put_back(std::exchange(on_, nullptr));
    }
  }

  coroutine_pool* pool_ = nullptr;
  member* on_ = nullptr;
};

template <class What>
  requires std::is_invocable_v<std::decay_t<What>&, coroutine_pool::yield&>
PIRN_ALWAYS_INLINE coroutine_pool::job coroutine_pool::start(What&& what) {
  member* on = take();
  message_of<What> next(what);
  step(on, &next);
  return job(this, on);
}

inline void coroutine_pool::trim(std::size_t keep) {
  while (idle_count_ > keep) {
    take()->surplus = true;
  }
  std::erase_if(all_, [](const std::unique_ptr<member>& each) { return each->surplus; });
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
