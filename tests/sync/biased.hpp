// What the tests of biased objects share: a stranger that comes while the worker of the bias is in the middle of
// something.
#pragma once

#include <signal.h>

#include <array>
#include <mutex>
#include <random>
#include <vector>

#include "fiber/support.hpp"

namespace pirn_test {

/// Returns whether the fences of this build and kernel allow a bias.
inline bool biases() {
#if defined(PIRN_TSAN)
  return true;
#else
  return pirn::platform::fences_are_asymmetric();
#endif
}

/// One worker locks and unlocks, while another party comes at some moment. A fresh lock has only one such moment.
template <class Lock>
struct meeting {
  Lock lock;
  long guarded = 0;  // not atomic: the lock orders it
  std::atomic<bool> other_inside = false;
  std::atomic<bool> over = false;
};

/// A plain thread, a fiber of another worker, and a migratable one if `migratable`, come at random moments.
template <class Lock>
void strangers_come_at_any_moment(bool migratable) {
  rig r(2);
  std::vector<meeting<Lock>> all(static_cast<std::size_t>(scaled(1000)));
  std::atomic<std::size_t> present = 0;
  std::atomic<long> locked = 0;
  const auto guard = [&](meeting<Lock>& each) {
    const std::lock_guard hold(each.lock);
    ++each.guarded;
    ++locked;
  };
  pirn::fiber owner = r.rt.spawn(
      [&] {
        for (meeting<Lock>& each : all) {
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
  const std::size_t parties = migratable ? 3 : 2;
  const auto come = [&](unsigned seed) {
    std::minstd_rand random(seed + 1);
    for (std::size_t i = seed; i < all.size(); i += parties) {
      ASSERT_TRUE(eventually([&] { return present > i; }));
      for (auto spin = random() % 50; spin > 0; --spin) {
        pirn::platform::relax();
      }
      guard(all[i]);
      all[i].over = true;
    }
  };
  std::jthread thread([&] { come(0); });
  std::vector<pirn::fiber> fibers;
  fibers.push_back(r.rt.spawn([&] { come(1); }, {.worker = 1}));
  if (migratable) {
    fibers.push_back(r.rt.spawn([&] { come(2); }, {.worker = 1, .migratable = true}));
  }
  thread.join();
  join_all(fibers);
  owner.join();
  long guarded = 0;
  for (const meeting<Lock>& each : all) {
    guarded += each.guarded;
  }
  EXPECT_EQ(guarded, locked);
}

#if !defined(PIRN_TSAN)  // which delivers no signal in the middle of a function
inline std::atomic<bool> interrupted;
inline std::atomic<bool> go_on;

inline void hold_up(int) {
  interrupted = true;
  const auto limit = clock::now() + 300us;  // the thread that sets `go_on` may wait for the interrupted code
  while (!go_on && clock::now() < limit) {
    pirn::platform::relax();
  }
}

/// A signal stops the worker of the bias anywhere, `times` times, while this thread comes. `lost` says what has
/// happened if it waits in vain.
template <class Lock, std::size_t times>
void its_worker_is_preempted_anywhere(const char* lost) {
  struct sigaction before = {};
  struct sigaction action = {};
  action.sa_handler = &hold_up;
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGURG, &action, &before), 0);
  {
    rig r(1);
    std::array<meeting<Lock>, times> all;
    std::atomic<std::size_t> present = 0;
    std::atomic<pthread_t> thread_of_worker = pthread_t{};
    pirn::fiber owner = r.rt.spawn([&] {
      thread_of_worker = pthread_self();
      for (meeting<Lock>& each : all) {
        {
          const std::lock_guard biased_from_here_on(each.lock);
        }
        ++present;
        while (!each.over) {
          // Once interrupted it ends its present operation and begins no other: only that one can notify the waiter.
          while (!interrupted) {
            const std::lock_guard guard(each.lock);
            ++each.guarded;
            EXPECT_FALSE(each.other_inside);
          }
          std::this_thread::yield();
        }
      }
    });
    int got = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      meeting<Lock>& each = all[i];
      compute_until([&] { return present > i; });
      interrupted = go_on = false;
      for (int spin = 0; spin < 100; ++spin) {
        pirn::platform::relax();
      }
      ASSERT_EQ(pthread_kill(thread_of_worker, SIGURG), 0);
      compute_until([&] { return interrupted.load(); });
      const bool locked = i % 2 == 0 && each.lock.try_lock();
      go_on = i % 2 == 0;  // otherwise it continues while this thread waits already
      if (!locked) {
        ASSERT_TRUE(each.lock.lock(clock::now() + 30s).has_value()) << lost;
      }
      got += locked ? 1 : 0;
      const long before_that = each.guarded;
      each.other_inside = true;
      for (int spin = 0; spin < 200; ++spin) {  // the owner runs meanwhile
        pirn::platform::relax();
      }
      each.other_inside = false;
      EXPECT_EQ(each.guarded, before_that);
      each.lock.unlock();
      each.over = true;
    }
    owner.join();
    EXPECT_GT(got, 0);
  }
  sigaction(SIGURG, &before, nullptr);
}
#endif

}  // namespace pirn_test
