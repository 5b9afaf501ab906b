// Helpers that the tests of several kinds of mutexes share.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "fiber/support.hpp"

namespace pirn_test {

/// Lets fibers of one worker lock a free mutex in turns. An unlock gives it to the longest waiter. Only `try_lock` can
/// take it before that waiter has run, four times.
template <class Mutex>
void expect_first_come_first_served(rig& r, Mutex& m) {
  std::string order;
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    m.lock();
    for (const char who : {'a', 'b', 'c', 'd'}) {
      all.push_back(pirn::spawn([&, who] {
        for (int i = 0; i < 3; ++i) {
          const std::lock_guard guard(m);
          order += who;
          pirn::this_fiber::yield();
        }
      }));
    }
    pirn::this_fiber::yield();
    for (int i = 0; i < 4; ++i) {
      m.unlock();
      EXPECT_TRUE(m.try_lock()) << i;
      pirn::this_fiber::yield();  // the first waiter does not get it, and is the first again
    }
    m.unlock();
    EXPECT_FALSE(m.try_lock());
    join_all(all);
  });
  EXPECT_EQ(order, "abcdabcdabcd");
}

/// Keeps worker 1 busy, after all of its fibers that were ready before have begun to wait.
class held_worker {
 public:
  held_worker() { hold(); }
  ~held_worker() {
    ++turn_;
    holds_.join();
  }
  held_worker(const held_worker&) = delete;
  held_worker& operator=(const held_worker&) = delete;

  /// Lets the worker run the fibers that have become ready meanwhile.
  void let_others_run() {
    pirn::fiber before = std::exchange(holds_, {});
    hold();
    before.join();
  }

 private:
  void hold() {
    std::atomic<bool> holds = false;
    pirn::fiber next = pirn::spawn(
        [this, &holds, mine = turn_ + 1] {
          holds = true;
          compute_until([&] { return turn_ > mine; });
        },
        {.worker = 1});
    ++turn_;  // ends the previous fiber, so that fibers woken before this one can run
    while (!holds) {
      pirn::this_fiber::yield();
    }
    holds_ = std::move(next);
  }

  std::atomic<int> turn_ = 0;
  pirn::fiber holds_;
};

}  // namespace pirn_test
