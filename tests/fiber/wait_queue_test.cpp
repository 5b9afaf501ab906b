// The wait queue: order, stops, deadlines and late wakers, and that no wake-up is lost.
#include "pirn/fiber/expert/wait_queue.hpp"

#include <algorithm>

#include "fiber/support.hpp"
#include "pirn/fiber/expert/inline_wait.hpp"

namespace {

using namespace pirn_test;
using pirn::wait_queue;
using pirn::wake_reason;

wake_reason wait_on(wait_queue& queue, pirn::wait_options options = {}) {
  queue.lock();
  return queue.wait(options);
}

bool has_waiters(wait_queue& queue, int count) {
  queue.lock();
  int found = 0;
  for (pirn::waiter* w = queue.front(); w != nullptr; w = w->next) {
    ++found;
  }
  queue.unlock();
  return found == count;
}

TEST(wait_queue, notifies_first_in_first_out) {
  rig r(1);
  wait_queue queue;
  std::string order;
  r.rt.run([&] {
    EXPECT_FALSE(queue.notify_one());
    std::vector<pirn::fiber> all;
    for (const char who : {'a', 'b', 'c', 'd'}) {
      all.push_back(pirn::spawn([&, who] {
        EXPECT_EQ(wait_on(queue), wake_reason::notified);
        order += who;
      }));
    }
    pirn::this_fiber::yield();
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(queue.notify_one());
      pirn::this_fiber::yield();
    }
    EXPECT_FALSE(queue.notify_one());
    EXPECT_TRUE(queue.empty());
  });
  EXPECT_EQ(order, "abcd");
}

TEST(wait_queue, an_inlined_wait_is_one_like_others) {
  rig r(2);
  wait_queue queue;
  std::atomic<int> through = 0;
  static constexpr pirn::wait_options options{.stoppable = false, .what = "a test"};
  const auto body = [&] {
    for (int i = 0; i < 100; ++i) {
      queue.lock();
      EXPECT_EQ(pirn::wait_inline(queue, options), wake_reason::notified);
      ++through;
    }
  };
  std::vector<pirn::fiber> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(r.rt.spawn(body, {.worker = i % 2, .migratable = i >= 4}));
  }
  std::jthread thread(body);
  all.front().request_stop();  // this does not end its wait
  EXPECT_TRUE(eventually([&] { return has_waiters(queue, 7); }));
  while (through < 700) {
    queue.lock();
    pirn::notify_one_inline(queue);
    std::this_thread::yield();
  }
  join_all(all);
}

TEST(wait_queue, an_inlined_wait_is_stopped_and_timed_out_like_others) {
  on_one_worker([] {
    wait_queue queue;
    queue.lock();
    EXPECT_EQ(pirn::wait_inline(queue, {.deadline = clock::now() + 1ms}), wake_reason::timed_out);
    pirn::fiber f = pirn::spawn([&queue] {
      queue.lock();
      EXPECT_EQ(pirn::wait_inline(queue, {.what = "a stop"}), wake_reason::stopped);
    });
    pirn::this_fiber::yield();
    f.request_stop();
    f.join();
    queue.lock();
    EXPECT_FALSE(pirn::notify_one_inline(queue));
  });
}

TEST(wait_queue, notify_all_reaches_fibers_of_all_workers_and_threads) {
  rig r(3);
  wait_queue queue;
  std::atomic<int> through = 0;
  std::vector<pirn::fiber> fibers;
  std::vector<std::jthread> threads;
  const auto body = [&] {
    EXPECT_EQ(wait_on(queue), wake_reason::notified);
    ++through;
  };
  for (int i = 0; i < 12; ++i) {
    fibers.push_back(r.rt.spawn(body));
  }
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back(body);
  }
  ASSERT_TRUE(eventually([&] { return has_waiters(queue, 16); }));
  EXPECT_EQ(through, 0);
  queue.notify_all();
  join_all(fibers);
  threads.clear();
  EXPECT_EQ(through, 16);
  queue.notify_all();
}

TEST(wait_queue, a_fiber_notifies_those_of_its_worker_in_order_and_all_others) {
  rig r(2);
  wait_queue queue;
  std::atomic<int> through = 0;
  std::string order;
  r.rt.spawn(
          [&] {
            std::vector<pirn::fiber> all;
            for (const char who : {'a', 'b', 'c'}) {
              all.push_back(pirn::spawn([&, who] {
                EXPECT_EQ(wait_on(queue), wake_reason::notified);
                order += who;
              }));
              all.push_back(pirn::spawn(
                  [&] {
                    EXPECT_EQ(wait_on(queue), wake_reason::notified);
                    ++through;
                  },
                  {.worker = 1}));
            }
            EXPECT_TRUE(eventually([&] {
              pirn::this_fiber::yield();
              return has_waiters(queue, 6);
            }));
            queue.notify_all();
            EXPECT_EQ(order, "");
            join_all(all);
          },
          {.worker = 0})
      .join();
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(through, 3);
}

TEST(wait_queue, hands_a_value_to_the_waiter_that_it_claims) {
  rig r;
  wait_queue queue;
  const auto take = [&] {
    int slot = 0;
    queue.lock();
    EXPECT_EQ(queue.wait({}, &slot), wake_reason::notified);
    return slot;
  };
  int on_fiber = 0;
  int on_thread = 0;
  pirn::fiber f = r.rt.spawn([&] { on_fiber = take(); });
  ASSERT_TRUE(eventually([&] { return has_waiters(queue, 1); }));
  std::jthread t([&] { on_thread = take(); });
  ASSERT_TRUE(eventually([&] { return has_waiters(queue, 2); }));
  for (const int value : {7, 8}) {
    queue.lock();
    pirn::waiter* const w = queue.claim_first();
    ASSERT_NE(w, nullptr);
    *static_cast<int*>(w->value) = value;
    queue.unlock();
    std::this_thread::sleep_for(1ms);  // claimed, but not yet runnable: the node must stay
    w->wake.schedule();
  }
  f.join();
  t.join();
  EXPECT_EQ(on_fiber, 7);
  EXPECT_EQ(on_thread, 8);
}

TEST(wait_queue, a_claimed_thread_stays_until_it_is_made_runnable) {
  wait_queue queue;
  std::atomic<bool> returned = false;
  std::jthread t([&] {
    // The deadline passes between the claim and `schedule`, and must not let the thread leave the wait.
    EXPECT_EQ(wait_on(queue, {.deadline = clock::now() + 30ms}), wake_reason::notified);
    returned = true;
  });
  ASSERT_TRUE(eventually([&] { return has_waiters(queue, 1); }));
  queue.lock();
  pirn::waiter* const w = queue.claim_first();
  queue.unlock();
  if (w == nullptr) {
    GTEST_SKIP() << "this machine slept through the deadline";
  }
  std::this_thread::sleep_for(60ms);
  EXPECT_FALSE(returned);
  w->wake.schedule();
  t.join();
}

TEST(wait_queue, a_deadline_takes_the_waiter_off) {
  rig r;
  wait_queue queue;
  const auto check = [&] {
    EXPECT_EQ(wait_on(queue, {.deadline = clock::now() + 2ms}), wake_reason::timed_out);
    EXPECT_TRUE(has_waiters(queue, 0));
    EXPECT_EQ(wait_on(queue, {.deadline = {}}), wake_reason::timed_out);
    EXPECT_FALSE(queue.notify_one());
  };
  check();
  r.rt.run(check);
}

TEST(wait_queue, others_keep_their_place_when_one_gives_up) {
  rig r(1);
  wait_queue queue;
  std::string order;
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    for (const char who : {'a', 'b', 'c', 'd', 'e'}) {
      all.push_back(pirn::spawn([&, who] {
        pirn::wait_options options;
        if (who == 'b' || who == 'e') {
          options.deadline = clock::now() + 1ms;
        }
        const wake_reason reason = wait_on(queue, options);
        order += reason == wake_reason::notified ? who : static_cast<char>(who - 'a' + 'A');
      }));
    }
    pirn::this_fiber::yield();
    all[2].request_stop();
    static_cast<void>(pirn::this_fiber::sleep_for(3ms));
    EXPECT_TRUE(has_waiters(queue, 2));
    while (queue.notify_one()) {
      pirn::this_fiber::yield();
    }
  });
  ASSERT_EQ(order.size(), 5u);
  std::sort(order.begin(), order.begin() + 3);  // their deadlines may pass in any order
  EXPECT_EQ(order, "BCEad");
}

TEST(wait_queue, a_stop_ends_stoppable_waits_only) {
  rig r;
  wait_queue queue;
  std::atomic<bool> stopped = false;
  pirn::fiber f = r.rt.spawn([&] {
    EXPECT_EQ(wait_on(queue), wake_reason::stopped);
    EXPECT_TRUE(has_waiters(queue, 0));
    EXPECT_EQ(wait_on(queue), wake_reason::stopped);  // at once
    stopped = true;
    EXPECT_EQ(wait_on(queue, {.stoppable = false}), wake_reason::notified);
    EXPECT_EQ(wait_on(queue, {.deadline = clock::now() + 1ms, .stoppable = false}), wake_reason::timed_out);
  });
  ASSERT_TRUE(eventually([&] { return has_waiters(queue, 1); }));
  f.request_stop();
  f.request_stop();
  ASSERT_TRUE(eventually([&] { return stopped && has_waiters(queue, 1); }));
  std::this_thread::sleep_for(2ms);
  f.request_stop();
  std::this_thread::sleep_for(2ms);
  EXPECT_TRUE(queue.notify_one());
  f.join();
}

TEST(wait_queue, a_late_waker_does_nothing) {
  rig r;
  wait_queue queue;
  std::vector<pirn::waker> late;
  pirn::fiber f = r.rt.spawn([&] {
    for (int i = 0; i < 10; ++i) {
      static_cast<void>(wait_on(queue));
    }
    EXPECT_EQ(wait_on(queue, {.deadline = clock::now() + 10ms}), wake_reason::timed_out);
  });
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(eventually([&] {
      const pirn::platform::spin_guard guard(queue);
      if (queue.empty() || !queue.front()->wake.agent()->waiting()) {  // or still the node of the previous wait
        return false;
      }
      late.push_back(queue.front()->wake);
      return true;
    }));
    for (const pirn::waker& w : late) {
      EXPECT_EQ(w.wake(), &w == &late.back()) << i;  // only the waker of the present wait succeeds
    }
  }
  f.join();
  EXPECT_FALSE(pirn::waker().wake());
}

TEST(wait_queue, a_waiter_woken_by_its_waker_alone_leaves_the_queue) {
  rig r(1);
  wait_queue queue;
  r.rt.run([&] {
    pirn::fiber f = pirn::spawn([&] { EXPECT_EQ(wait_on(queue), wake_reason::notified); });
    pirn::fiber g = pirn::spawn([&] { EXPECT_EQ(wait_on(queue), wake_reason::notified); });
    pirn::this_fiber::yield();
    EXPECT_TRUE(queue.front()->wake.wake());
    f.join();
    EXPECT_TRUE(has_waiters(queue, 1));
    EXPECT_TRUE(queue.notify_one());
    g.join();
  });
}

TEST(wait_queue, exactly_one_of_notify_stop_and_deadline_ends_a_wait) {
  rig r;
  wait_queue queue;
  int reasons[3] = {};
  for (int i = 0; i < scaled(2000); ++i) {
    wake_reason reason{};
    pirn::fiber f =
        r.rt.spawn([&] { reason = wait_on(queue, {.deadline = clock::now() + (i % 16) * 2us}); }, {.worker = i % 2});
    if (i % 3 == 0) {
      std::this_thread::sleep_for(1us);
    }
    const bool notified = i % 5 == 0 ? (f.request_stop(), queue.notify_one()) : queue.notify_one();
    f.join();
    EXPECT_EQ(notified, reason == wake_reason::notified);
    EXPECT_TRUE(queue.empty());
    ++reasons[static_cast<int>(reason)];
  }
  RecordProperty("notified", reasons[0]);
  RecordProperty("timed_out", reasons[1]);
  RecordProperty("stopped", reasons[2]);
}

TEST(wait_queue, errors_have_names) {
  EXPECT_STREQ(pirn::to_string(pirn::wait_error::closed), "it was closed");
  EXPECT_STRNE(pirn::to_string(pirn::wait_error::stopped), pirn::to_string(pirn::wait_error::timed_out));
}

// ---- no wake-up is lost ------------------------------------------------------------------------------------------

void ping_pong(event& mine, event& other, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    static_cast<void>(mine.wait());
    other.signal();
  }
}

TEST(wait_queue, no_wake_up_is_lost_between_fibers) {
  for (const int second : {0, 1}) {
    rig r(2);
    event a;
    event b;
    const int rounds = scaled(20'000);
    pirn::fiber f = r.rt.spawn([&] { ping_pong(a, b, rounds); }, {.worker = 0});
    pirn::fiber g = r.rt.spawn([&] { ping_pong(b, a, rounds); }, {.worker = second});
    a.signal();
    f.join();
    g.join();
  }
}

TEST(wait_queue, no_wake_up_is_lost_between_a_fiber_and_a_thread) {
  rig r(1);
  event a;
  event b;
  const int rounds = scaled(20'000);
  pirn::fiber f = r.rt.spawn([&] { ping_pong(a, b, rounds); });
  a.signal();
  ping_pong(b, a, rounds);
  f.join();
}

TEST(wait_queue, no_wake_up_is_lost_between_threads) {
  event a;
  event b;
  const int rounds = scaled(10'000);
  std::jthread t([&] { ping_pong(a, b, rounds); });
  a.signal();
  ping_pong(b, a, rounds);
}

TEST(wait_queue, a_round_trip_through_every_worker) {
  rig r(4);
  std::vector<event> ring(8);
  const int rounds = scaled(4000);
  std::vector<pirn::fiber> all;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    all.push_back(r.rt.spawn([&, i] { ping_pong(ring[i], ring[(i + 1) % ring.size()], rounds); },
                             {.worker = static_cast<int>(i % 4)}));
  }
  ring[0].signal();
  ring[3].signal();
  join_all(all);
}

}  // namespace
