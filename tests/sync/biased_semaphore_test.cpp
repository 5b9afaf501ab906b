// Biased semaphores: permits of the worker of the bias, and other parties that end the bias.
#include "pirn/sync/expert/biased_semaphore.hpp"

#include <signal.h>

#include <array>
#include <random>
#include <string>

#include "fiber/support.hpp"
#include "sync/locks.hpp"

namespace {

using namespace pirn_test;
using pirn::biased_semaphore;
using pirn::wait_error;

/// Returns whether the fences of this build and kernel allow a bias.
bool biases() {
#if defined(PIRN_TSAN)
  return true;
#else
  return pirn::platform::fences_are_asymmetric();
#endif
}

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

/// One worker takes and gives back a permit, while another party comes at some moment. A fresh semaphore has only one
/// such moment.
struct meeting {
  biased_semaphore<1> permit{1};
  long guarded = 0;  // not atomic: the permit orders it
  std::atomic<bool> other_inside = false;
  std::atomic<bool> over = false;
};

TEST(biased_semaphore, a_stranger_may_come_at_any_moment) {
  rig r(2);
  std::vector<meeting> all(static_cast<std::size_t>(scaled(1000)));
  std::atomic<std::size_t> present = 0;
  std::atomic<long> taken = 0;
  const auto guard = [&](meeting& each) {
    EXPECT_TRUE(each.permit.acquire().has_value());
    ++each.guarded;
    ++taken;
    each.permit.release();
  };
  pirn::fiber owner = r.rt.spawn(
      [&] {
        for (meeting& each : all) {
          ++present;
          while (!each.over) {
            for (int i = 0; i < 10; ++i) {
              guard(each);
            }
            pirn::this_fiber::yield();
          }
        }
      },
      {.worker = 0});
  const auto come = [&](unsigned seed) {
    std::minstd_rand random(seed + 1);
    for (std::size_t i = seed; i < all.size(); i += 2) {
      ASSERT_TRUE(eventually([&] { return present > i; }));
      for (auto spin = random() % 50; spin > 0; --spin) {
        pirn::platform::relax();
      }
      guard(all[i]);
      all[i].over = true;
    }
  };
  std::jthread thread([&] { come(0); });
  pirn::fiber pinned = r.rt.spawn([&] { come(1); }, {.worker = 1});
  thread.join();
  pinned.join();
  owner.join();
  long guarded = 0;
  for (const meeting& each : all) {
    guarded += each.guarded;
  }
  EXPECT_EQ(guarded, taken);
}

#if !defined(PIRN_TSAN)  // which delivers no signal in the middle of a function
std::atomic<bool> interrupted;
std::atomic<bool> go_on;

void hold_up(int) {
  interrupted = true;
  const auto limit = clock::now() + 300us;  // the thread that sets `go_on` may wait for the interrupted code
  while (!go_on && clock::now() < limit) {
    pirn::platform::relax();
  }
}

TEST(biased_semaphore, its_worker_may_be_preempted_anywhere) {
  struct sigaction before = {};
  struct sigaction action = {};
  action.sa_handler = &hold_up;
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGURG, &action, &before), 0);
  {
    rig r(1);
    std::array<meeting, 400> all;
    std::atomic<std::size_t> present = 0;
    std::atomic<pthread_t> thread_of_worker = pthread_t{};
    pirn::fiber owner = r.rt.spawn([&] {
      thread_of_worker = pthread_self();
      for (meeting& each : all) {
        EXPECT_TRUE(each.permit.try_acquire());  // biased from here on
        each.permit.release();
        ++present;
        while (!each.over) {
          // Once interrupted it ends its present operation and begins no other: only that one can notify the waiter.
          while (!interrupted) {
            EXPECT_TRUE(each.permit.acquire().has_value());
            ++each.guarded;
            EXPECT_FALSE(each.other_inside);
            each.permit.release();
          }
          std::this_thread::yield();
        }
      }
    });
    int got = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      meeting& each = all[i];
      compute_until([&] { return present > i; });
      interrupted = go_on = false;
      for (int spin = 0; spin < 100; ++spin) {
        pirn::platform::relax();
      }
      ASSERT_EQ(pthread_kill(thread_of_worker, SIGURG), 0);
      compute_until([&] { return interrupted.load(); });
      const bool taken = i % 2 == 0 && each.permit.try_acquire();
      go_on = i % 2 == 0;  // otherwise it continues while this thread waits already
      if (!taken) {
        ASSERT_TRUE(each.permit.acquire(clock::now() + 30s).has_value()) << "a permit was lost";
      }
      got += taken ? 1 : 0;
      const long before_that = each.guarded;
      each.other_inside = true;
      for (int spin = 0; spin < 200; ++spin) {  // the owner runs meanwhile
        pirn::platform::relax();
      }
      each.other_inside = false;
      EXPECT_EQ(each.guarded, before_that);
      each.permit.release();
      each.over = true;
    }
    owner.join();
    EXPECT_GT(got, 0);
  }
  sigaction(SIGURG, &before, nullptr);
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
