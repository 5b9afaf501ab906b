// The stackful coroutine library of `client`: fibers of one core, their run loop, and their means of waiting for each
// other.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "../harness.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"
#include "switching.hpp"

// A function by which one layer of the program calls the next. It is not inlined, as no function of a separately
// compiled library is.
#define BENCH_INTERFACE [[gnu::noinline]]

namespace bench {
// Unnamed, here and in the other headers: the plugin changes only functions that are known to be called in one file
// alone.
namespace {

struct alignas(64) fiber {
  saved state;
  fiber* next = nullptr;  ///< in its present queue
  std::function<void()> body;
  pirn::stack stack;
};

/// Fibers, first in, first out.
class fiber_queue {
 public:
  [[nodiscard]] bool empty() const { return first_ == nullptr; }
  void push(fiber& one) {
    one.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &one;
    last_ = &one;
  }
  fiber& pop() { return *std::exchange(first_, first_->next); }

 private:
  fiber* first_ = nullptr;
  fiber* last_ = nullptr;
};

/// The running fiber, and the fibers that are ready.
class run_loop {
 public:
  /// Runs one fiber for each of the bodies until all have ended, on stacks of `stack_size` bytes.
  void run(std::vector<std::function<void()>> bodies, std::size_t stack_size) {
    left_ = bodies.size();
    std::vector<fiber> fibers(bodies.size());
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      const pirn::stack_result stack = stacks_.allocate(stack_size);
      check(stack.error == pirn::stack_error::none, "there is a stack for each fiber");
      fibers[i] = {fresh(stack.value.top(), begin), nullptr, std::move(bodies[i]), stack.value};
      wake(fibers[i]);
    }
    running_ = &outside_;
    suspend();
    for (const fiber& each : fibers) {
      stacks_.deallocate(each.stack);
    }
  }

  [[nodiscard]] fiber& running() { return *running_; }
  void wake(fiber& one) { ready_.push(one); }

  /// Lets others run until the caller is woken.
  BENCH_SUSPENSION void suspend() {
    check(!ready_.empty(), "no fiber waits for what never happens");
    switch_over();
  }
  /// Lets all other ready fibers run first.
  BENCH_SUSPENSION void yield() {
    ready_.push(*running_);
    switch_over();
  }

 private:
  [[gnu::always_inline]] void switch_over() {
    fiber* const self = running_;
    running_ = &ready_.pop();
    switch_to(self->state, running_->state);
  }
  [[noreturn]] static void begin();

  fiber_queue ready_;
  fiber* running_ = nullptr;
  fiber outside_;
  std::size_t left_ = 0;
  pirn::guarded_pool stacks_;
};

run_loop loop;

void run_loop::begin() {
  loop.running_->body();
  if (--loop.left_ == 0) {
    loop.wake(loop.outside_);
  }
  loop.suspend();
  std::abort();
}

/// A wait of one fiber, which other fibers can end.
class signal {
 public:
  [[nodiscard]] bool has_waiter() const { return waiter_ != nullptr; }
  BENCH_SWITCHES void wait() {
    waiter_ = &loop.running();
    loop.suspend();
  }
  void raise() {
    if (waiter_ != nullptr) {
      loop.wake(*std::exchange(waiter_, nullptr));
    }
  }

 private:
  fiber* waiter_ = nullptr;
};

/// A lock, first come, first served.
class turns {
 public:
  BENCH_SWITCHES void enter() {
    if (std::exchange(taken_, true)) {
      waiting_.push(loop.running());
      loop.suspend();
    }
  }
  void leave() {
    if (waiting_.empty()) {
      taken_ = false;
    } else {
      loop.wake(waiting_.pop());
    }
  }

 private:
  bool taken_ = false;
  fiber_queue waiting_;
};

/// Holds such a lock for a scope.
class turn {
 public:
  explicit turn(turns& of) : of_(of) { of_.enter(); }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;
  ~turn() { of_.leave(); }

 private:
  turns& of_;
};

}  // namespace
}  // namespace bench
