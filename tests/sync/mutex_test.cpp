// Mutexes, fair and barging.
#include "pirn/sync/mutex.hpp"

#include <memory>
#include <mutex>

#include "fiber/support.hpp"
#include "sync/locks.hpp"

namespace {

using namespace pirn_test;
using pirn::mutex;
using pirn::mutex_policy;
using pirn::wait_error;

class both_policies : public testing::TestWithParam<mutex_policy> {
 protected:
  mutex m{GetParam()};
};

TEST_P(both_policies, excludes_fibers_and_threads_of_all_kinds) {
  rig r(3);
  const int rounds = scaled(3000);
  int inside = 0;
  long counter = 0;  // not atomic: the lock orders it
  const auto body = [&] {
    for (int i = 0; i < rounds; ++i) {
      const std::lock_guard guard(m);
      EXPECT_EQ(++inside, 1);
      ++counter;
      if (i % 64 == 0) {
        pirn::this_fiber::yield();  // with the lock held
      }
      --inside;
    }
  };
  std::vector<pirn::fiber> fibers;
  for (int i = 0; i < 9; ++i) {
    fibers.push_back(r.rt.spawn(body, {.worker = i % 3}));
  }
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back(body);
  }
  join_all(fibers);
  threads.clear();
  EXPECT_EQ(counter, 11L * rounds);
}

TEST_P(both_policies, tries_and_gives_up) {
  rig r(1);
  EXPECT_TRUE(m.try_lock());
  EXPECT_FALSE(m.try_lock());
  r.rt.run([&] {
    EXPECT_FALSE(m.try_lock());
    EXPECT_EQ(m.lock(clock::now() + 1ms).error(), wait_error::timed_out);
    EXPECT_EQ(m.lock(clock::time_point{}).error(), wait_error::timed_out);
  });
  EXPECT_EQ(m.lock(clock::now() + 1ms).error(), wait_error::timed_out);  // on this thread
  m.unlock();
  EXPECT_TRUE(m.lock(clock::time_point{}).has_value());  // free: no need to wait
  m.unlock();
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST_P(both_policies, a_stop_ends_lock_with_deadline_only) {
  rig r(1);
  m.lock();
  std::atomic<bool> stopped = false;
  std::atomic<bool> second = false;
  pirn::fiber f = r.rt.spawn([&] {
    EXPECT_EQ(m.lock(pirn::platform::never).error(), wait_error::stopped);
    EXPECT_EQ(m.lock(pirn::platform::never).error(), wait_error::stopped);
    stopped = true;
    m.lock();
    second = true;
    m.unlock();
    EXPECT_TRUE(m.lock(pirn::platform::never).has_value());  // free: no need to wait
    m.unlock();
  });
  std::this_thread::sleep_for(1ms);
  f.request_stop();
  ASSERT_TRUE(eventually([&] { return stopped.load(); }));
  f.request_stop();
  std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(second);
  m.unlock();
  f.join();
  EXPECT_TRUE(second);
}

TEST_P(both_policies, works_with_the_standard_guards) {
  mutex other(GetParam());
  {
    const std::scoped_lock both(m, other);
    EXPECT_FALSE(m.try_lock());
  }
  std::unique_lock lock(m, std::try_to_lock);
  EXPECT_TRUE(lock.owns_lock());
  lock.unlock();
  lock.lock();
}

TEST_P(both_policies, may_be_destroyed_by_its_last_owner) {
  rig r(2);
  for (int i = 0; i < scaled(3000); ++i) {
    auto shared = std::make_unique<mutex>(GetParam());
    mutex& here = *shared;
    here.lock();
    const bool waiter_gone = i % 2 == 0;
    if (waiter_gone) {  // contended before, but now without a waiter
      EXPECT_FALSE(here.lock(clock::time_point{}).has_value());
    }
    pirn::fiber f = r.rt.spawn([&] {
      if (waiter_gone) {
        while (!here.try_lock()) {
          pirn::this_fiber::yield();
        }
      } else {
        here.lock();
      }
      here.unlock();
      shared.reset();  // the unlock below may not have returned yet
    });
    for (int k = 0; k < i % 100; ++k) {
      pirn::platform::relax();
    }
    here.unlock();
    f.join();
  }
}

INSTANTIATE_TEST_SUITE_P(policies, both_policies, testing::Values(mutex_policy::fair, mutex_policy::barging),
                         [](const auto& policy) { return policy.param == mutex_policy::fair ? "fair" : "barging"; });

TEST(mutex, fair_is_first_come_first_served) {
  rig r(1);
  mutex m;
  expect_first_come_first_served(r, m);
}

TEST(mutex, barging_lets_the_running_fiber_go_on) {
  rig r(1);
  mutex m(mutex_policy::barging);
  std::string order;
  r.rt.run([&] {
    m.lock();
    pirn::fiber waits = pirn::spawn([&] {
      const std::lock_guard guard(m);
      order += 'b';
    });
    pirn::this_fiber::yield();
    for (int i = 0; i < 3; ++i) {
      m.unlock();
      EXPECT_TRUE(m.try_lock());
      order += 'a';
    }
    m.unlock();
    waits.join();
  });
  EXPECT_EQ(order, "aaab");
}

TEST(mutex, nobody_starves_on_a_fair_one) {
  rig r(1);  // of two workers one may be without a processor for long, and meanwhile no fiber waits
  mutex m;
  std::vector<int> turns(4);
  r.rt.run([&] {
    bool done = false;
    std::vector<pirn::fiber> all;
    for (int& mine : turns) {
      all.push_back(pirn::spawn([&] {
        while (!done) {
          const std::lock_guard guard(m);
          done = ++mine == 10000;
          pirn::this_fiber::yield();
        }
      }));
    }
    join_all(all);
  });
  const auto [least, most] = std::minmax_element(turns.begin(), turns.end());
  EXPECT_LE(*most, *least + 1);
}

TEST(mutex_death, unlock_of_an_unlocked_one_is_diagnosed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  mutex m;
  EXPECT_DEATH(m.unlock(), "called on a mutex that is not locked");
}

TEST(mutex, who_waits_at_another_worker_is_not_overtaken_for_ever) {
  rig r(2);
  pirn::mutex m;
  std::atomic<bool> got = false;
  int rounds = 0;
  r.rt.run([&] {
    m.lock();
    pirn::fiber waits = pirn::spawn(
        [&] {
          const std::lock_guard guard(m);
          got = true;
        },
        {.worker = 1});
    for (; !got && rounds < 2000; ++rounds) {
      static_cast<void>(pirn::this_fiber::sleep_for(500us));  // meanwhile the waiter runs, misses the lock, waits again
      m.unlock();
      m.lock();
    }
    m.unlock();
    waits.join();
  });
  EXPECT_LT(rounds, 2000);
}

}  // namespace
