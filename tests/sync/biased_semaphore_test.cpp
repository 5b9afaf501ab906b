// Biased semaphores: permits of the worker of the bias, and other parties that end the bias.
#include "pirn/sync/expert/biased_semaphore.hpp"

#include <array>
#include <string>

#include "fiber/support.hpp"
#include "sync/biased.hpp"
#include "sync/locks.hpp"

namespace {

using namespace pirn_test;
using pirn::biased_semaphore;
using pirn::wait_error;

/// Biases `permits` towards the worker of that index.
template <std::ptrdiff_t Max>
void bias(rig& r, biased_semaphore<Max>& permits, int worker = 0) {
  r.rt.spawn(
          [&] {
            if (permits.try_acquire()) {
              permits.release();
            }
          },
          {.worker = worker})
      .join();
  ASSERT_EQ(permits.biased(), biases());
}

TEST(biased_semaphore, counts_with_and_without_a_bias) {
  rig r(1);
  for (const bool biased : {false, true}) {
    biased_semaphore<3> permits(2);
    const auto count = [&] {
      EXPECT_TRUE(permits.try_acquire());
      EXPECT_EQ(permits.biased(), biased && biases());
      EXPECT_TRUE(permits.acquire().has_value());
      EXPECT_FALSE(permits.try_acquire());
      permits.release(3);
      for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(permits.acquire(clock::time_point{}).has_value());  // no need to wait
      }
      EXPECT_EQ(permits.acquire(clock::time_point{}).error(), wait_error::timed_out);
      EXPECT_FALSE(permits.try_acquire_for(1ms));
      permits.release(0);
      EXPECT_FALSE(permits.try_acquire());
      EXPECT_EQ(permits.biased(), biased && biases());
    };
    biased ? r.rt.run(count) : count();
  }
  EXPECT_EQ(biased_semaphore<3>::max(), 3);
}

TEST(biased_semaphore, stays_with_its_worker_though_its_fibers_wait_for_each_other) {
  rig r(1);
  biased_semaphore permits(0);
  std::string order;
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    for (const char who : {'a', 'b', 'c', 'd'}) {
      all.push_back(pirn::spawn([&, who] {
        EXPECT_TRUE(permits.acquire().has_value());
        order += who;
      }));
    }
    pirn::this_fiber::yield();
    permits.release();
    EXPECT_FALSE(permits.try_acquire());  // the permit was handed off
    pirn::this_fiber::yield();
    EXPECT_EQ(order, "a");
    permits.release(5);  // three are handed off, two stay
    EXPECT_TRUE(permits.try_acquire());
    EXPECT_TRUE(permits.try_acquire());
    EXPECT_FALSE(permits.try_acquire());
    join_all(all);
  });
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(permits.biased(), biases());
}

TEST(biased_semaphore, a_stranger_finds_the_permits_that_are_there) {
  for (const bool fiber : {false, true}) {
    for (int left = 0; left <= 2; ++left) {
      rig r(2);
      biased_semaphore<4> permits(4);
      r.rt.spawn(
              [&] {
                for (int i = left; i < 4; ++i) {
                  EXPECT_TRUE(permits.acquire().has_value());
                }
              },
              {.worker = 0})
          .join();
      EXPECT_EQ(permits.biased(), biases());
      const auto take_all = [&] {
        for (int i = 0; i < left; ++i) {
          EXPECT_TRUE(permits.try_acquire());
        }
        EXPECT_FALSE(permits.try_acquire());
      };
      fiber ? r.rt.spawn(take_all, {.worker = 1}).join() : take_all();
      EXPECT_FALSE(permits.biased());
      r.rt.spawn(
              [&] {
                EXPECT_FALSE(permits.try_acquire());
                permits.release(2);
              },
              {.worker = 0})
          .join();
      EXPECT_TRUE(permits.try_acquire() && permits.try_acquire() && !permits.try_acquire());
    }
  }
}

TEST(biased_semaphore, a_stranger_waits_for_a_permit_or_gives_up) {
  rig r(2);
  biased_semaphore<2> permits(1);
  std::atomic<bool> holds = false;
  std::atomic<bool> let_go = false;
  pirn::fiber owner = r.rt.spawn(
      [&] {
        EXPECT_TRUE(permits.acquire().has_value());
        holds = true;
        EXPECT_TRUE(eventually([&] { return let_go.load(); }));
        permits.release();
      },
      {.worker = 0});
  ASSERT_TRUE(eventually([&] { return holds.load(); }));
  EXPECT_FALSE(permits.try_acquire());
  EXPECT_EQ(permits.acquire(clock::now() + 1ms).error(), wait_error::timed_out);
  pirn::fiber stopped = r.rt.spawn([&] { EXPECT_EQ(permits.acquire().error(), wait_error::stopped); }, {.worker = 1});
  stopped.request_stop();
  stopped.join();
  std::jthread last([&] {
    EXPECT_TRUE(permits.acquire().has_value());
    EXPECT_TRUE(let_go);
    permits.release();
  });
  std::this_thread::sleep_for(1ms);
  let_go = true;
  owner.join();
  last.join();
  EXPECT_TRUE(permits.try_acquire());
  EXPECT_FALSE(permits.try_acquire());
}

TEST(biased_semaphore, a_stranger_releases_what_a_fiber_of_its_worker_waits_for) {
  rig r(1);
  biased_semaphore permits(0);
  bias(r, permits);
  pirn::fiber waits = r.rt.spawn([&] { EXPECT_TRUE(permits.acquire().has_value()); });
  permits.release();
  waits.join();
  EXPECT_FALSE(permits.biased());
  EXPECT_FALSE(permits.try_acquire());
}

TEST(biased_semaphore, a_plain_thread_that_is_first_leaves_it_without_a_bias) {
  rig r(1);
  biased_semaphore permits(1);
  EXPECT_TRUE(permits.try_acquire());
  r.rt.run([&] {
    EXPECT_FALSE(permits.try_acquire());
    permits.release();
  });
  EXPECT_FALSE(permits.biased());
}

TEST(biased_semaphore, outlives_the_runtime_that_it_is_biased_towards) {
  biased_semaphore<2> permits(2);
  {
    rig r(1);
    bias(r, permits);
  }
  rig r(2);
  r.rt.spawn([&] { EXPECT_TRUE(permits.try_acquire()); }, {.migratable = true}).join();
  EXPECT_TRUE(permits.try_acquire());
  EXPECT_FALSE(permits.try_acquire());
}

TEST(biased_semaphore, admits_no_more_than_it_has_permits) {
  rig r(3);
  biased_semaphore permits(3);
  const int rounds = scaled(3000);
  std::atomic<int> inside = 0;
  const auto body = [&] {
    for (int i = 0; i < rounds; ++i) {
      EXPECT_TRUE(permits.acquire().has_value());
      EXPECT_LE(++inside, 3);
      if (i % 4 == 0) {
        pirn::this_fiber::yield();
      }
      --inside;
      permits.release();
    }
  };
  std::vector<pirn::fiber> fibers;
  for (int i = 0; i < 9; ++i) {
    fibers.push_back(r.rt.spawn(body, {.worker = i % 3, .migratable = i % 2 == 0}));
  }
  std::jthread thread(body);
  join_all(fibers);
  thread.join();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(permits.try_acquire());
  }
  EXPECT_FALSE(permits.try_acquire());
}

/// A semaphore of one permit as a lock.
struct one_permit {
  biased_semaphore<1> permit{1};
  void lock() { EXPECT_TRUE(permit.acquire().has_value()); }
  [[nodiscard]] auto lock(pirn::time_limit deadline) { return permit.acquire(deadline); }
  [[nodiscard]] bool try_lock() { return permit.try_acquire(); }
  void unlock() { permit.release(); }
};

TEST(biased_semaphore, a_stranger_may_come_at_any_moment) { strangers_come_at_any_moment<one_permit>(false); }

#if !defined(PIRN_TSAN)
TEST(biased_semaphore, its_worker_may_be_preempted_anywhere) {
  its_worker_is_preempted_anywhere<one_permit, 400>("a permit was lost");
}
#endif

TEST(biased_semaphore_death, misuse_is_diagnosed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto in_fiber = [](std::ptrdiff_t count) {
    rig r(1);
    biased_semaphore<1> one(1);
    r.rt.run([&] { one.release(count); });
  };
  EXPECT_DEATH(in_fiber(1), "counting_semaphore is released above its maximum");
  EXPECT_DEATH(in_fiber(-1), "released a negative number of times");
  EXPECT_DEATH(biased_semaphore<1>(2), "above its maximum");
}

}  // namespace
