// Policies of objects: which waiter is woken first, and whether it runs at once.
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "fiber/support.hpp"
#include "pirn/sync/condition_variable.hpp"
#include "pirn/sync/event.hpp"
#include "pirn/sync/expert/local.hpp"
#include "pirn/sync/future.hpp"
#include "pirn/sync/latch.hpp"
#include "pirn/sync/mutex.hpp"
#include "pirn/sync/recursive_mutex.hpp"
#include "pirn/sync/select.hpp"
#include "pirn/sync/semaphore.hpp"
#include "pirn/sync/wait_group.hpp"

namespace {

using namespace pirn_test;
using pirn::event_reset;
using pirn::wait_order;
using pirn::wait_policy;
using pirn::wake_policy;

constexpr wait_policy switching{.wake = wake_policy::switch_over};
constexpr wait_policy youngest_first{.order = wait_order::lifo};

/// Waits of each kind. `wakes` calls of `wake` wake four waiters.
template <class Mutex>
struct lock_of {
  static constexpr int wakes = 1;
  explicit lock_of(wait_policy policy) : lock(policy) { lock.lock(); }
  void wait() { const std::lock_guard guard(lock); }
  void wake() { lock.unlock(); }
  Mutex lock;
};
template <class Semaphore>
struct permits {
  static constexpr int wakes = 4;
  explicit permits(wait_policy policy) : free(0, policy) {}
  void wait() { EXPECT_TRUE(free.acquire().has_value()); }
  void wake() { free.release(); }
  Semaphore free;
};
template <class Event, event_reset Reset>
struct signal {
  static constexpr int wakes = Reset == event_reset::manual ? 1 : 4;
  explicit signal(wait_policy policy) : set(Reset, policy) {}
  void wait() { EXPECT_TRUE(set.wait().has_value()); }
  void wake() { set.set(); }
  Event set;
};
/// Every second waiter selects.
template <class Event, event_reset Reset>
struct selected_signal : signal<Event, Reset> {
  using signal<Event, Reset>::signal;
  void wait() {
    if (++waits % 2 == 0) {
      EXPECT_TRUE(select(pirn::wait(this->set)).outcome.has_value());
    } else {
      signal<Event, Reset>::wait();
    }
  }
  int waits = 0;
};
struct arrival {
  static constexpr int wakes = 1;
  explicit arrival(wait_policy policy) : open(1, policy) {}
  void wait() { EXPECT_TRUE(open.wait().has_value()); }
  void wake() { open.count_down(); }
  pirn::latch open;
};
struct items {
  static constexpr int wakes = 1;
  explicit items(wait_policy policy) : left(1, policy) {}
  void wait() { EXPECT_TRUE(left.wait().has_value()); }
  void wake() { left.done(); }
  pirn::wait_group left;
};
struct result {
  static constexpr int wakes = 1;
  explicit result(wait_policy policy) : from(policy), later(from.get_future().share()) {}
  void wait() { EXPECT_EQ(later.get(), 1); }
  void wake() { from.set_value(1); }
  pirn::promise<int> from;
  pirn::shared_future<int> later;
};

template <class Object>
class wait_policies : public testing::Test {};
using objects =
    testing::Types<lock_of<pirn::mutex>, lock_of<pirn::recursive_mutex>, lock_of<pirn::local::mutex>,
                   permits<pirn::binary_semaphore>, permits<pirn::local::binary_semaphore>,
                   signal<pirn::event, event_reset::automatic>, signal<pirn::event, event_reset::manual>,
                   signal<pirn::local::event, event_reset::automatic>, signal<pirn::local::event, event_reset::manual>,
                   selected_signal<pirn::event, event_reset::automatic>,
                   selected_signal<pirn::event, event_reset::manual>,
                   selected_signal<pirn::local::event, event_reset::automatic>, arrival, items, result>;
TYPED_TEST_SUITE(wait_policies, objects);

TYPED_TEST(wait_policies, a_waiter_is_queued_or_runs_at_once) {
  for (const bool at_once : {false, true}) {
    rig r(1);
    r.rt.run([at_once] {
      TypeParam object(at_once ? switching : wait_policy{});
      std::string order;
      pirn::fiber waiter = pirn::spawn([&] {
        object.wait();
        order += 'w';
      });
      pirn::this_fiber::yield();
      pirn::fiber other = pirn::spawn([&] { order += 'o'; });
      object.wake();
      order += 'c';
      other.join();
      waiter.join();
      EXPECT_EQ(order.front(), at_once ? 'w' : 'c') << order;
      EXPECT_EQ(order == "woc", at_once) << order;
    });
  }
}

TYPED_TEST(wait_policies, the_youngest_or_the_longest_waiter_comes_first) {
  for (const wait_policy policy : {wait_policy{}, youngest_first}) {
    rig r(1);
    r.rt.run([policy] {
      TypeParam object(policy);
      std::string order;
      std::vector<pirn::fiber> waiters;
      for (const char name : {'a', 'b', 'c', 'd'}) {
        waiters.push_back(pirn::spawn([&, name] {
          object.wait();
          order += name;
        }));
      }
      pirn::this_fiber::yield();
      for (int i = 0; i < TypeParam::wakes; ++i) {
        object.wake();
        pirn::this_fiber::yield();
      }
      join_all(waiters);
      EXPECT_EQ(order, policy.order == wait_order::lifo ? "dcba" : "abcd");
    });
  }
}

TYPED_TEST(wait_policies, of_several_woken_at_once_the_first_runs_and_the_others_are_ready) {
  if constexpr (requires(TypeParam& object) { object.lock; }) {
    return;  // an unlock wakes one
  }
  rig r(1);
  r.rt.run([] {
    TypeParam object(switching);
    std::string order;
    std::vector<pirn::fiber> waiters;
    for (const char name : {'a', 'b', 'd'}) {
      waiters.push_back(pirn::spawn([&, name] {
        object.wait();
        order += name;
      }));
    }
    pirn::this_fiber::yield();
    object.wake();
    order += 'c';
    for (int i = 1; i < TypeParam::wakes; ++i) {
      object.wake();
    }
    join_all(waiters);
    EXPECT_EQ(order, TypeParam::wakes == 1 ? "abdc" : "acbd");
  });
}

TYPED_TEST(wait_policies, no_waiter_starves_behind_younger_ones) {
  constexpr bool locks = requires(TypeParam& object) { object.lock; };
  if constexpr (locks || TypeParam::wakes > 1) {
    rig r(1);
    r.rt.run([] {
      TypeParam object(youngest_first);
      bool longest_ran = false;
      std::vector<pirn::fiber> waiters;
      waiters.push_back(pirn::spawn([&] {
        object.wait();
        longest_ran = true;
      }));
      int younger = 0;
      for (; !longest_ran && younger < 100; ++younger) {
        pirn::this_fiber::yield();
        waiters.push_back(pirn::spawn([&] { object.wait(); }));
        pirn::this_fiber::yield();
        object.wake();
        if constexpr (locks) {
          object.lock.lock();
        } else {
          pirn::this_fiber::yield();
        }
      }
      EXPECT_GT(younger, 2);
      EXPECT_LT(younger, 20);
      object.wake();
      join_all(waiters);
    });
  }
}

TEST(wait_policy, of_a_mutex_does_not_disturb_the_wait_of_a_condition_variable) {
  rig r(1);
  r.rt.run([] {
    pirn::mutex lock(switching);
    pirn::condition_variable changed;
    int state = 0;
    std::vector<pirn::fiber> fibers;
    for (int i = 0; i < 3; ++i) {
      fibers.push_back(pirn::spawn([&, i] {
        std::unique_lock held(lock);
        while (state != 2 - i) {  // the first to get the lock is the last to go on
          EXPECT_TRUE(changed.wait(held).has_value());
        }
        ++state;
        changed.notify_all();
      }));
    }
    lock.lock();
    pirn::this_fiber::yield();  // now all wait for the lock: each unlock finds a waiter
    lock.unlock();
    join_all(fibers);
    EXPECT_EQ(state, 3);
  });
}

TEST(wait_policy, switches_to_a_waiter_of_this_worker_only) {
  rig r(2);
  r.rt.run([] {
    pirn::binary_semaphore free(0, switching);
    std::atomic<bool> got = false;
    pirn::fiber there = pirn::spawn(
        [&] {
          EXPECT_TRUE(free.acquire().has_value());
          got = true;
        },
        {.worker = 1});
    EXPECT_TRUE(pirn::this_fiber::sleep_for(1ms).has_value());
    free.release();
    there.join();
    EXPECT_TRUE(got);
  });
}

TEST(wait_policy, a_plain_thread_waits_and_wakes) {
  rig r(1);
  pirn::event begin(event_reset::automatic, switching);
  pirn::event end(event_reset::automatic, youngest_first);
  pirn::fiber f = r.rt.spawn([&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(begin.wait().has_value());
      end.set();
    }
  });
  for (int i = 0; i < 20; ++i) {
    begin.set();
    EXPECT_TRUE(end.wait().has_value());
  }
  f.join();
}

TEST(wait_policy, the_youngest_may_give_up) {
  rig r(1);
  r.rt.run([] {
    pirn::mutex lock(youngest_first);
    lock.lock();
    std::string order;
    pirn::fiber first = pirn::spawn([&] {
      const std::lock_guard guard(lock);
      order += 'a';
    });
    pirn::this_fiber::yield();
    pirn::fiber second = pirn::spawn([&] {
      EXPECT_EQ(lock.lock(clock::now() + 1ms).error(), pirn::wait_error::timed_out);
      order += 'b';
    });
    pirn::this_fiber::yield();
    second.join();
    lock.unlock();
    first.join();
    EXPECT_EQ(order, "ba");
  });
}

}  // namespace
