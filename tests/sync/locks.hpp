// What the tests of several kinds of mutexes share.
#pragma once

#include <mutex>
#include <string>

#include "fiber/support.hpp"

namespace pirn_test {

/// Has fibers of one worker lock a free mutex in turns: who has waited longest gets it when it is unlocked.
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
    m.unlock();
    EXPECT_FALSE(m.try_lock());  // it was handed over already
    join_all(all);
  });
  EXPECT_EQ(order, "abcdabcdabcd");
}

}  // namespace pirn_test
