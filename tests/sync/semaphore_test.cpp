// Counting and binary semaphores.
#include "pirn/sync/semaphore.hpp"

#include <optional>

#include "sync/locks.hpp"

namespace {

using namespace pirn_test;
using pirn::binary_semaphore;
using pirn::counting_semaphore;
using pirn::wait_error;

TEST(semaphore, counts) {
  counting_semaphore<3> permits(2);
  EXPECT_EQ(permits.max(), 3);
  EXPECT_EQ(binary_semaphore::max(), 1);
  EXPECT_TRUE(permits.try_acquire());
  EXPECT_TRUE(permits.acquire().has_value());
  EXPECT_FALSE(permits.try_acquire());
  permits.release(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(permits.acquire(clock::time_point{}).has_value());  // no need to wait
  }
  EXPECT_EQ(permits.acquire(clock::time_point{}).error(), wait_error::timed_out);
  permits.release(0);
  EXPECT_FALSE(permits.try_acquire());
}

TEST(semaphore, admits_no_more_than_it_has_permits) {
  rig r(3);
  counting_semaphore permits(3);
  const int rounds = scaled(3000);
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  const auto body = [&] {
    for (int i = 0; i < rounds; ++i) {
      EXPECT_TRUE(permits.acquire().has_value());
      const int now = ++inside;
      EXPECT_LE(now, 3);
      raise_to(most, now);
      pirn::this_fiber::yield();
      --inside;
      permits.release();
    }
  };
  std::vector<pirn::fiber> fibers;
  for (int i = 0; i < 9; ++i) {
    fibers.push_back(r.rt.spawn(body, {.worker = i % 3}));
  }
  std::jthread thread(body);
  join_all(fibers);
  thread.join();
  EXPECT_GT(most, 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(permits.try_acquire());
  }
  EXPECT_FALSE(permits.try_acquire());
}

TEST(semaphore, hands_over_in_the_order_of_waiting) {
  rig r(1);
  counting_semaphore permits(0);
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
}

TEST(semaphore, is_released_once_for_each_that_waits_elsewhere) {
  for (const int at_once : {1, 2}) {
    rig r(2);
    pirn::counting_semaphore<1> flag(0);  // no permit stays for longer than a waiter takes to run
    std::atomic<int> got = 0;
    r.rt.run([&] {
      std::vector<pirn::fiber> all;
      for (int i = 0; i < 4; ++i) {
        all.push_back(pirn::spawn(
            [&] {
              EXPECT_TRUE(flag.acquire().has_value());
              ++got;
            },
            {.worker = 1}));
      }
      {
        const held_worker other;
        for (int i = 0; i < 4; i += at_once) {
          flag.release(at_once);
        }
        EXPECT_EQ(got, 0);
      }
      join_all(all);
      EXPECT_EQ(got, 4);
      EXPECT_FALSE(flag.try_acquire());
      flag.release();
      EXPECT_TRUE(flag.try_acquire());
    });
  }
}

TEST(semaphore, wakes_as_many_as_it_has_permits_though_the_first_does_not_run) {
  rig r(2);
  pirn::counting_semaphore<4> permits(0);
  std::atomic<int> waiting = 0;
  r.rt.run([&] {
    pirn::fiber first = pirn::spawn(
        [&] {
          ++waiting;
          EXPECT_TRUE(permits.acquire().has_value());
        },
        {.worker = 1});
    {
      const held_worker other;
      std::atomic<bool> got = false;
      std::jthread second([&] {
        ++waiting;
        EXPECT_TRUE(permits.acquire(clock::now() + 10s).has_value());
        got = true;
      });
      EXPECT_TRUE(eventually([&] { return waiting == 2; }));
      static_cast<void>(pirn::this_fiber::sleep_for(20ms));
      permits.release();
      permits.release();
      EXPECT_TRUE(eventually([&] { return got.load(); }));
    }
    first.join();
  });
  EXPECT_FALSE(permits.try_acquire());
}

TEST(semaphore, passes_a_token_between_a_thread_and_a_fiber) {
  rig r(1);
  binary_semaphore to_fiber(0);
  binary_semaphore to_thread(0);
  const int rounds = scaled(5000);
  int value = 0;  // not atomic: the semaphores order it
  pirn::fiber f = r.rt.spawn([&] {
    for (int i = 0; i < rounds; ++i) {
      EXPECT_TRUE(to_fiber.acquire().has_value());
      EXPECT_EQ(value, 2 * i + 1);
      ++value;
      to_thread.release();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    ++value;
    to_fiber.release();
    EXPECT_TRUE(to_thread.acquire().has_value());
    EXPECT_EQ(value, 2 * i + 2);
  }
  f.join();
}

TEST(semaphore, may_be_destroyed_by_whoever_got_the_last_permit) {
  rig r(2);
  for (int i = 0; i < scaled(3000); ++i) {
    std::optional<binary_semaphore> done(std::in_place, 0);
    binary_semaphore& here = *done;
    if (i % 2 == 0) {  // after an earlier wait
      EXPECT_FALSE(here.acquire(clock::time_point{}).has_value());
    }
    pirn::fiber f = r.rt.spawn([&] { here.release(); });
    if (i % 3 == 0) {
      while (!here.try_acquire()) {
        pirn::platform::relax();
      }
    } else {
      EXPECT_TRUE(here.acquire().has_value());
    }
    done.reset();
    f.join();
  }
}

TEST(semaphore_death, misuse_is_diagnosed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  binary_semaphore one(1);
  EXPECT_DEATH(one.release(), "released above its maximum");
  EXPECT_DEATH(one.release(-1), "released a negative number of times");
  EXPECT_DEATH(binary_semaphore(2), "above its maximum");
  EXPECT_DEATH(
      {
        rig r(1);
        std::optional<binary_semaphore> none(std::in_place, 0);
        pirn::fiber f = r.rt.spawn([&] { EXPECT_FALSE(none->acquire().has_value()); });
        // On the same worker, after it: ThreadSanitizer would report the race of another thread instead.
        r.rt.spawn([&] { none.reset(); }).join();
      },
      "semaphore was destroyed while it had waiters");
}

}  // namespace
