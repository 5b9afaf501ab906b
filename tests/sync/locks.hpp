// What the tests of several kinds of mutexes share.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "fiber/support.hpp"

namespace pirn_test {

/// Has fibers of one worker lock a free mutex in turns: who has waited longest gets it when it is unlocked, but for
/// `try_lock`, which takes it as long as that one has not run, four times.
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
      pirn::this_fiber::yield();  // the first of them does not get it, and is the first again
    }
    m.unlock();
    EXPECT_FALSE(m.try_lock());
    join_all(all);
  });
  EXPECT_EQ(order, "abcdabcdabcd");
}

/// Keeps worker 1 busy, once all of its fibers wait that have been ready before.
class held_worker {
 public:
  held_worker() { hold(); }
  ~held_worker() {
    ++turn_;
    holds_.join();
  }
  held_worker(const held_worker&) = delete;
  held_worker& operator=(const held_worker&) = delete;

  /// Has it run those that have become ready meanwhile.
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
    ++turn_;  // ends the one before, so that those run who were woken before this one came
    while (!holds) {
      pirn::this_fiber::yield();
    }
    holds_ = std::move(next);
  }

  std::atomic<int> turn_ = 0;
  pirn::fiber holds_;
};

}  // namespace pirn_test
