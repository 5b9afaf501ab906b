// Waiting functions with the names of the standard library, and parts of that library that call them.
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#include "fiber/support.hpp"
#include "pirn/sync/condition_variable.hpp"
#include "pirn/sync/expert/biased_mutex.hpp"
#include "pirn/sync/expert/local.hpp"
#include "pirn/sync/future.hpp"
#include "pirn/sync/mutex.hpp"
#include "pirn/sync/recursive_mutex.hpp"
#include "pirn/sync/semaphore.hpp"
#include "pirn/sync/shared_mutex.hpp"

namespace {

using namespace pirn_test;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;
using pirn::cv_status;
using pirn::future_status;

/// Calls `wait` in another fiber of the same worker and joins that fiber.
template <class Wait>
void in_another(Wait wait) {
  pirn::fiber other = pirn::spawn(wait);
  other.join();
}

/// Runs `body` in a fiber of a runtime with one worker, because local primitives take no more.
template <class F>
void in_a_fiber(F body) {
  rig r(1);
  r.rt.run(body);
}

template <class Mutex>
void try_locks(const char* what) {
  SCOPED_TRACE(what);
  in_a_fiber([] {
    Mutex m;
    {
      const std::unique_lock timed(m, 1h);
      EXPECT_TRUE(timed.owns_lock());
      in_another([&] {
        EXPECT_FALSE(std::unique_lock(m, 1ms).owns_lock());
        EXPECT_FALSE(std::unique_lock(m, std::chrono::system_clock::now() + 1ms).owns_lock());
        std::unique_lock later(m, std::defer_lock);
        const auto begun = steady::now();
        EXPECT_FALSE(later.try_lock_for(3ms));
        EXPECT_GE(steady::now() - begun, 3ms);
        EXPECT_FALSE(later.try_lock_until(steady::now() + 1ms));
        EXPECT_FALSE(m.try_lock_for(0.001s));
        EXPECT_FALSE(m.try_lock_until(steady::now() - 1s));
      });
    }
    std::unique_lock later(m, std::defer_lock);
    EXPECT_TRUE(later.try_lock_until(steady::now() - 1s)) << "a free one";
    pirn::fiber waits = pirn::spawn([&] {
      EXPECT_TRUE(m.try_lock_for(1h));
      m.unlock();
    });
    pirn::fiber stopped = pirn::spawn([&] { EXPECT_FALSE(m.try_lock_for(1h)); });
    pirn::this_fiber::yield();
    stopped.request_stop();
    stopped.join();
    later.unlock();
    waits.join();
    const std::scoped_lock both(m);
  });
}

TEST(std_forms, timed_locks) {
  try_locks<pirn::mutex>("mutex");
  try_locks<pirn::recursive_mutex>("recursive_mutex");
  try_locks<pirn::shared_mutex>("shared_mutex");
  try_locks<pirn::biased_mutex>("biased_mutex");
  try_locks<pirn::local::mutex>("local::mutex");
  try_locks<pirn::local::recursive_mutex>("local::recursive_mutex");
  try_locks<pirn::local::shared_mutex>("local::shared_mutex");
}

template <class Mutex>
void try_locks_to_read() {
  in_a_fiber([] {
    Mutex m;
    {
      const std::shared_lock one(m, 1h);
      in_another([&] {
        EXPECT_TRUE(std::shared_lock(m, 1ms).owns_lock());
        EXPECT_FALSE(std::unique_lock(m, 1ms).owns_lock());
      });
    }
    const std::unique_lock writer(m);
    in_another([&] {
      EXPECT_FALSE(std::shared_lock(m, 1ms).owns_lock());
      std::shared_lock later(m, std::defer_lock);
      EXPECT_FALSE(later.try_lock_for(1ms));
      EXPECT_FALSE(later.try_lock_until(std::chrono::system_clock::now() + 1ms));
    });
  });
}

TEST(std_forms, timed_locks_to_read) {
  try_locks_to_read<pirn::shared_mutex>();
  try_locks_to_read<pirn::local::shared_mutex>();
}

template <class Condition, class Mutex>
void waits_of_a_condition() {
  in_a_fiber([] {
    Mutex m;
    Condition changed;
    bool ready = false;
    std::unique_lock lock(m);
    EXPECT_EQ(changed.wait_for(lock, 1ms), cv_status::timeout);
    EXPECT_EQ(changed.wait_until(lock, std::chrono::system_clock::now() + 1ms), cv_status::timeout);
    EXPECT_FALSE(changed.wait_for(lock, 1ms, [&] { return ready; }));
    EXPECT_FALSE(changed.wait_until(lock, steady::now() + 1ms, [&] { return ready; }));
    EXPECT_TRUE(changed.wait_for(lock, 0s, [] { return true; }));
    EXPECT_TRUE(lock.owns_lock());
    pirn::fiber sets = pirn::spawn([&] {
      changed.notify_one();
      pirn::this_fiber::yield();
      ready = true;
      changed.notify_all();
    });
    EXPECT_EQ(changed.wait_for(lock, 1h), cv_status::no_timeout);
    EXPECT_TRUE(changed.wait_until(lock, steady::now() + 1h, [&] { return ready; }));
    sets.join();
    lock.unlock();
    pirn::fiber stopped = pirn::spawn([&] {
      std::unique_lock own(m);
      EXPECT_EQ(changed.wait_for(own, 1h), cv_status::timeout);
      EXPECT_FALSE(changed.wait_for(own, 1h, [] { return false; }));
    });
    pirn::this_fiber::yield();
    stopped.request_stop();
    stopped.join();
  });
}

TEST(std_forms, conditions) {
  waits_of_a_condition<pirn::condition_variable, pirn::mutex>();
  waits_of_a_condition<pirn::local::condition_variable, pirn::local::mutex>();
}

TEST(std_forms, futures) {
  in_a_fiber([] {
    pirn::promise<int> promise;
    pirn::shared_future<int> result = promise.get_future().share();
    EXPECT_EQ(result.wait_for(0s), future_status::timeout);
    EXPECT_EQ(result.wait_until(steady::now() + 1ms), future_status::timeout);
    pirn::fiber sets = pirn::spawn([&] { promise.set_value(7); });
    EXPECT_EQ(result.wait_for(1h), future_status::ready);
    EXPECT_EQ(result.wait_until(std::chrono::system_clock::now() - 1h), future_status::ready);
    sets.join();
    pirn::local::promise<int> local;
    auto here = local.get_future();
    EXPECT_EQ(here.wait_for(1ms), future_status::timeout);
    local.set_value(1);
    EXPECT_EQ(here.wait_for(1ms), future_status::ready);
    EXPECT_THROW(static_cast<void>(pirn::future<int>().wait_for(0s)), pirn::future_error);
  });
}

TEST(std_forms, semaphores) {
  in_a_fiber([] {
    pirn::binary_semaphore one(1);
    EXPECT_TRUE(one.try_acquire_for(1ms));
    EXPECT_FALSE(one.try_acquire_for(1ms));
    EXPECT_FALSE(one.try_acquire_until(std::chrono::system_clock::now() + 1ms));
    pirn::local::counting_semaphore<2> two(1);
    EXPECT_TRUE(two.try_acquire_until(steady::now()));
    EXPECT_FALSE(two.try_acquire_for(1ms));
  });
}

// A condition variable of the standard library on locks of pirn: for plain threads, since it blocks its callers.
TEST(std_forms, a_condition_of_the_standard_library) {
  pirn::mutex m;
  std::condition_variable_any changed;
  bool ready = false;
  std::jthread sets([&] {
    const std::scoped_lock guard(m);
    ready = true;
    changed.notify_all();
  });
  std::unique_lock lock(m);
  EXPECT_TRUE(changed.wait_for(lock, 1h, [&] { return ready; }));
  EXPECT_TRUE(lock.owns_lock());
  EXPECT_EQ(changed.wait_for(lock, 1ms), std::cv_status::timeout);
}

}  // namespace
