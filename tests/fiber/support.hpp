// Helpers that the tests of fiber, sync and stress share.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "pirn/fiber/runtime.hpp"

namespace pirn_test {

using namespace std::chrono_literals;
using clock = pirn::platform::clock;

#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
inline constexpr int slowdown = 10;
#else
inline constexpr int slowdown = 1;
#endif
/// Returns a count that a plain build can afford, scaled down for a build with a sanitizer.
constexpr int scaled(int count) { return count / slowdown > 0 ? count / slowdown : 1; }

/// Sets `most` to `value` if that is larger; others may do so too.
inline void raise_to(std::atomic<int>& most, int value) {
  for (int before = most; before < value && !most.compare_exchange_weak(before, value);) {
  }
}

/// A runtime with a separate pool of stacks, which aborts if a stack is not given back.
struct rig {
  explicit rig(unsigned workers = 2, pirn::runtime_options options = {})
      : rt(completed(workers, std::move(options), pool)) {}

  pirn::guarded_pool pool;
  pirn::runtime rt;

 private:
  static pirn::runtime_options completed(unsigned workers, pirn::runtime_options options, pirn::guarded_pool& pool) {
    options.workers = workers;
    options.stacks = &pool;
    return options;
  }
};

/// Runs `body` in a fiber of a runtime with one worker.
template <class Body>
void on_one_worker(Body body) {
  rig r(1);
  r.rt.run(body);
}

/// Waits, on a fiber or a thread, until `ready()`. Returns false if that takes far longer than any machine needs.
template <class Predicate>
bool eventually(Predicate ready) {
  const auto limit = clock::now() + 30s;
  while (!ready()) {
    if (clock::now() > limit) {
      return false;
    }
    static_cast<void>(pirn::this_fiber::sleep_for(200us));
    pirn::this_fiber::yield();
  }
  return true;
}

/// Computes until `ready()`: the worker does nothing else meanwhile.
template <class Predicate>
void compute_until(Predicate ready) {
  for (int spin = 1; !ready(); ++spin) {
    if (spin % 100 == 0) {
      std::this_thread::yield();
    }
    pirn::platform::relax();
  }
}

/// Joins all fibers. Destroying the handles would also wait for the end, but would request a stop first.
inline void join_all(std::vector<pirn::fiber>& fibers) {
  for (pirn::fiber& f : fibers) {
    f.join();
  }
}

/// Gives up the processor in one of three ways, in the middle of a computation. The other fiber must see no exception
/// in flight.
inline void pause(int kind) {
  switch (kind % 3) {
    case 0:
      pirn::this_fiber::yield();
      break;
    case 1:
      static_cast<void>(pirn::this_fiber::sleep_for(10us));
      break;
    default:
      pirn::spawn([] { EXPECT_EQ(std::current_exception(), nullptr); }).join();
  }
}

/// Lets one waiter pass per signal, on nothing but wait_queue: the smallest primitive that loses a wake-up if the queue
/// does.
class event {
 public:
  void signal() {
    queue_.lock();
    if (pirn::waiter* const w = queue_.claim_first()) {
      queue_.unlock();
      w->wake.schedule();
    } else {
      ++signals_;
      queue_.unlock();
    }
  }
  pirn::wake_reason wait(pirn::wait_options options = {}) {
    queue_.lock();
    if (signals_ > 0) {
      --signals_;
      queue_.unlock();
      return pirn::wake_reason::notified;
    }
    return queue_.wait(options);
  }

 private:
  pirn::wait_queue queue_;
  int signals_ = 0;
};

}  // namespace pirn_test
