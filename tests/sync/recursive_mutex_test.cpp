// Recursive mutexes, fair and barging.
#include "pirn/sync/recursive_mutex.hpp"

#include <mutex>

#include "fiber/support.hpp"
#include "pirn/sync/condition_variable.hpp"

namespace {

using namespace pirn_test;
using pirn::recursive_mutex;
using pirn::wait_error;

class both_policies : public testing::TestWithParam<pirn::mutex_policy> {
 protected:
  recursive_mutex m{GetParam()};
};

TEST_P(both_policies, excludes_others_until_unlocked_as_often_as_locked) {
  rig r(3);
  const int rounds = scaled(1000);
  int inside = 0;
  long counter = 0;  // not atomic: the lock orders it
  const auto nested = [&](auto& self, int depth) -> void {
    const std::lock_guard guard(m);
    EXPECT_EQ(inside++, depth);
    ++counter;
    if (depth < 3) {
      self(self, depth + 1);
      if (counter % 64 == 0) {
        pirn::this_fiber::yield();  // with the lock held
      }
    }
    --inside;
  };
  const auto body = [&] {
    for (int i = 0; i < rounds; ++i) {
      nested(nested, 0);
    }
  };
  std::vector<pirn::fiber> fibers;
  for (int i = 0; i < 6; ++i) {
    fibers.push_back(r.rt.spawn(body, {.worker = i % 3}));
  }
  std::jthread thread(body);
  body();
  join_all(fibers);
  thread.join();
  EXPECT_EQ(counter, 8L * 4 * rounds);
}

TEST_P(both_policies, belongs_to_a_fiber_not_to_its_worker) {
  rig r(1);
  r.rt.run([&] {
    EXPECT_TRUE(m.try_lock());
    EXPECT_TRUE(m.lock(clock::time_point{}).has_value());
    pirn::fiber other = pirn::spawn([&] {
      EXPECT_FALSE(m.try_lock());
      EXPECT_EQ(m.lock(clock::now() + 1ms).error(), wait_error::timed_out);
    });
    other.join();
    m.unlock();
    pirn::fiber waits = pirn::spawn([&] {
      const std::lock_guard guard(m);
      EXPECT_TRUE(m.try_lock());
      m.unlock();
    });
    pirn::this_fiber::yield();
    EXPECT_TRUE(m.try_lock());  // the fiber still owns it
    m.unlock();
    m.unlock();
    waits.join();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

TEST_P(both_policies, a_stop_ends_lock_with_deadline_only) {
  rig r(1);
  m.lock();
  std::atomic<bool> stopped = false;
  pirn::fiber f = r.rt.spawn([&] {
    EXPECT_EQ(m.lock(pirn::platform::never).error(), wait_error::stopped);
    stopped = true;
    m.lock();
    EXPECT_TRUE(m.lock(pirn::platform::never).has_value());
    m.unlock();
    m.unlock();
  });
  std::this_thread::sleep_for(1ms);
  f.request_stop();
  ASSERT_TRUE(eventually([&] { return stopped.load(); }));
  m.unlock();
  f.join();
}

INSTANTIATE_TEST_SUITE_P(policies, both_policies,
                         testing::Values(pirn::mutex_policy::fair, pirn::mutex_policy::barging),
                         [](const auto& policy) {
                           return policy.param == pirn::mutex_policy::fair ? "fair" : "barging";
                         });

TEST(recursive_mutex, serves_a_condition_variable) {
  rig r(1);
  recursive_mutex m;
  pirn::condition_variable changed;
  bool ready = false;
  pirn::fiber f = r.rt.spawn([&] {
    std::unique_lock lock(m);
    EXPECT_TRUE(changed.wait(lock, [&] { return ready; }).has_value());
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
  std::this_thread::sleep_for(1ms);
  {
    const std::lock_guard guard(m);
    ready = true;
  }
  changed.notify_one();
  f.join();
}

TEST(recursive_mutex_death, unlock_by_another_is_diagnosed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  recursive_mutex m;
  EXPECT_DEATH(m.unlock(), "called on a recursive_mutex that the caller does not own");
  m.lock();
  EXPECT_DEATH(std::jthread([&] { m.unlock(); }).join(), "called on a recursive_mutex that the caller does not own");
  m.unlock();
}

}  // namespace
