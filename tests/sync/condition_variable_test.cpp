// Condition variables with mutexes of pirn and with other locks.
#include "pirn/sync/condition_variable.hpp"

#include <deque>
#include <mutex>

#include "fiber/support.hpp"
#include "pirn/sync/mutex.hpp"

namespace {

using namespace pirn_test;
using pirn::condition_variable;
using pirn::mutex;
using pirn::wait_error;
using lock_type = std::unique_lock<mutex>;

TEST(condition_variable, notifies_first_in_first_out) {
  rig r(1);
  mutex m;
  condition_variable changed;
  std::string order;
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    for (const char who : {'a', 'b', 'c'}) {
      all.push_back(pirn::spawn([&, who] {
        lock_type lock(m);
        EXPECT_TRUE(changed.wait(lock).has_value());
        EXPECT_TRUE(lock.owns_lock());
        EXPECT_FALSE(m.try_lock());
        order += who;
      }));
    }
    pirn::this_fiber::yield();
    for (int i = 0; i < 3; ++i) {
      changed.notify_one();
      pirn::this_fiber::yield();
    }
    join_all(all);
    changed.notify_one();  // no waiter is there, and the notification is not kept
    lock_type lock(m);
    EXPECT_EQ(changed.wait(lock, clock::now() + 1ms).error(), wait_error::timed_out);
    EXPECT_TRUE(lock.owns_lock());
  });
  EXPECT_EQ(order, "abc");
}

TEST(condition_variable, notify_all_reaches_everybody) {
  rig r(3);
  mutex m;
  condition_variable changed;
  bool ready = false;
  int waiting = 0;
  int through = 0;
  const auto body = [&] {
    lock_type lock(m);
    ++waiting;
    EXPECT_TRUE(changed.wait(lock, [&] { return ready; }).has_value());
    ++through;
  };
  std::vector<pirn::fiber> fibers;
  for (int i = 0; i < 9; ++i) {
    fibers.push_back(r.rt.spawn(body));
  }
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back(body);
  }
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard guard(m);
    return waiting == 12;
  }));
  changed.notify_all();  // not ready: all continue to wait
  {
    const std::lock_guard guard(m);
    ready = true;
    EXPECT_EQ(through, 0);
  }
  changed.notify_all();
  join_all(fibers);
  threads.clear();
  EXPECT_EQ(through, 12);
}

TEST(condition_variable, a_predicate_decides) {
  rig r(1);
  mutex m;
  condition_variable changed;
  r.rt.run([&] {
    lock_type lock(m);
    EXPECT_TRUE(changed.wait(lock, [] { return true; }).has_value());
    EXPECT_EQ(changed.wait(lock, [] { return false; }, clock::now() + 1ms).error(), wait_error::timed_out);
    int asked = 0;  // becomes true at the last moment
    EXPECT_TRUE(changed.wait(lock, [&] { return ++asked == 2; }, clock::now() + 1ms).has_value());
  });
}

TEST(condition_variable, a_stop_ends_the_wait_but_not_the_locking) {
  rig r(2);
  mutex m;
  condition_variable changed;
  std::atomic<bool> back = false;
  pirn::fiber f = r.rt.spawn([&] {
    lock_type lock(m);
    EXPECT_EQ(changed.wait(lock).error(), wait_error::stopped);
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_FALSE(m.try_lock());
    EXPECT_EQ(changed.wait(lock, [] { return false; }).error(), wait_error::stopped);
    EXPECT_TRUE(changed.wait(lock, [] { return true; }).has_value());
    back = true;
  });
  std::this_thread::sleep_for(2ms);
  {
    const std::lock_guard guard(m);
    f.request_stop();
    std::this_thread::sleep_for(2ms);
    EXPECT_FALSE(back);  // it cannot return while the mutex is taken
  }
  f.join();
  EXPECT_TRUE(back);
  changed.notify_one();
}

TEST(condition_variable, carries_a_queue_between_fibers_and_threads) {
  rig r(2);
  for (const bool producer_is_thread : {false, true}) {
    mutex m;
    condition_variable not_empty;
    condition_variable not_full;
    std::deque<int> queue;
    const int count = scaled(20'000);
    std::atomic<long> sum = 0;
    const auto produce = [&] {
      for (int i = 1; i <= count; ++i) {
        lock_type lock(m);
        EXPECT_TRUE(not_full.wait(lock, [&] { return queue.size() < 8; }).has_value());
        queue.push_back(i);
        not_empty.notify_one();
      }
    };
    const auto consume = [&] {
      for (int i = 1; i <= count / 2; ++i) {
        lock_type lock(m);
        EXPECT_TRUE(not_empty.wait(lock, [&] { return !queue.empty(); }).has_value());
        sum += queue.front();
        queue.pop_front();
        lock.unlock();
        not_full.notify_one();
      }
    };
    pirn::fiber a = r.rt.spawn(consume, {.worker = 0});
    pirn::fiber b = r.rt.spawn(consume, {.worker = 1});
    if (producer_is_thread) {
      produce();
    } else {
      r.rt.run(produce);
    }
    a.join();
    b.join();
    EXPECT_EQ(sum, static_cast<long>(count / 2 * 2) * (count + 1) / 2);
  }
}

TEST(condition_variable, works_with_any_lock) {
  rig r(2);
  pirn::condition_variable changed;
  mutex plain;
  std::mutex of_threads;  // not held while the fiber is suspended
  int state = 0;
  const auto pass = [&](auto& lock, int from) {
    lock.lock();
    EXPECT_TRUE(changed.wait(lock, [&] { return state == from; }).has_value());
    ++state;
    lock.unlock();
    changed.notify_all();
  };
  pirn::fiber a = r.rt.spawn([&] { pass(plain, 0); }, {.worker = 0});
  a.join();
  pirn::fiber b = r.rt.spawn([&] { pass(of_threads, 2); }, {.worker = 0});
  pirn::fiber c = r.rt.spawn([&] { pass(of_threads, 1); }, {.worker = 1});
  b.join();
  c.join();
  EXPECT_EQ(state, 3);
}

TEST(condition_variable, a_lock_that_owns_nothing_is_misuse) {
  mutex m;
  condition_variable changed;
  lock_type lock(m, std::defer_lock);
  EXPECT_THROW(static_cast<void>(changed.wait(lock)), std::system_error);
  changed.notify_all();  // the condition variable is as before
}

}  // namespace
