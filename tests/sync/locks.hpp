// What the tests of several kinds of mutexes share.
#pragma once

#include <mutex>
#include <string>

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

}  // namespace pirn_test
