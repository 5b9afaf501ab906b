// The twins without atomic operations, for fibers of one worker only.
#include "pirn/sync/expert/local.hpp"

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::wait_error;
using pirn::wake_reason;
namespace local = pirn::local;

TEST(local_mutex, excludes_and_hands_over_in_order) {
  on_one_worker([] {
    local::mutex m;
    std::vector<int> order;
    int inside = 0;
    m.lock();
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 5; ++i) {
      all.push_back(pirn::spawn([&, i] {
        for (int round = 0; round < 3; ++round) {
          const std::lock_guard guard(m);
          EXPECT_EQ(++inside, 1);
          order.push_back(i);
          pirn::this_fiber::yield();
          --inside;
        }
      }));
    }
    pirn::this_fiber::yield();
    m.unlock();
    join_all(all);
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
    EXPECT_TRUE(m.try_lock());
    EXPECT_FALSE(m.try_lock());
    m.unlock();
  });
}

TEST(local_mutex, a_wait_ends_by_deadline_and_stop) {
  on_one_worker([] {
    local::mutex m;
    m.lock();
    EXPECT_EQ(m.lock(clock::now() + 1ms).error(), wait_error::timed_out);
    pirn::fiber waits = pirn::spawn([&] { EXPECT_EQ(m.lock(pirn::platform::never).error(), wait_error::stopped); });
    pirn::fiber behind = pirn::spawn([&] {
      m.lock();  // no stop ends this
      m.unlock();
    });
    pirn::this_fiber::yield();
    waits.request_stop();
    behind.request_stop();
    m.unlock();  // the first waiter's wait has ended, though it has not run yet
    waits.join();
    behind.join();
    EXPECT_TRUE(m.lock(clock::time_point{}).has_value());
    m.unlock();
  });
}

TEST(local_wait_queue, wakes_in_order_and_ends_by_deadline_and_stop) {
  on_one_worker([] {
    local::wait_queue queue;
    EXPECT_TRUE(queue.empty());
    EXPECT_FALSE(queue.notify_one());
    std::vector<int> order;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(pirn::spawn([&, i] {
        const bool stoppable = i % 2 != 0;
        EXPECT_EQ(queue.wait({.stoppable = stoppable}), i == 1 ? wake_reason::stopped : wake_reason::notified);
        order.push_back(i);
      }));
    }
    pirn::this_fiber::yield();
    EXPECT_FALSE(queue.empty());
    all[0].request_stop();  // this does not end its wait
    all[1].request_stop();
    pirn::this_fiber::yield();
    EXPECT_EQ(order, (std::vector<int>{1}));
    EXPECT_TRUE(queue.notify_one());
    pirn::this_fiber::yield();
    EXPECT_EQ(order, (std::vector<int>{1, 0}));
    queue.notify_all();
    join_all(all);
    EXPECT_EQ(order, (std::vector<int>{1, 0, 2, 3}));
    EXPECT_EQ(queue.wait({.deadline = clock::now() + 1ms}), wake_reason::timed_out);
    EXPECT_TRUE(queue.empty());
  });
}

TEST(local_condition_variable, a_bounded_buffer_loses_nothing) {
  on_one_worker([] {
    local::mutex m;
    local::condition_variable not_full;
    local::condition_variable not_empty;
    std::deque<int> buffer;
    long sum = 0;
    const int rounds = scaled(3000);
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(pirn::spawn([&] {
        for (int value = 1; value <= rounds; ++value) {
          std::unique_lock lock(m);
          EXPECT_TRUE(not_full.wait(lock, [&] { return buffer.size() < 3; }));
          buffer.push_back(value);
          not_empty.notify_one();
        }
      }));
      all.push_back(pirn::spawn([&] {
        for (int taken = 0; taken < rounds; ++taken) {
          std::unique_lock lock(m);
          EXPECT_TRUE(not_empty.wait(lock, [&] { return !buffer.empty(); }));
          sum += buffer.front();
          buffer.pop_front();
          not_full.notify_one();
        }
      }));
    }
    join_all(all);
    EXPECT_EQ(sum, 4L * rounds * (rounds + 1) / 2);
  });
}

TEST(local_condition_variable, an_end_of_the_wait_leaves_the_lock_held) {
  on_one_worker([] {
    local::mutex m;
    local::condition_variable never;
    std::unique_lock lock(m);
    EXPECT_EQ(never.wait(lock, clock::now() + 1ms).error(), wait_error::timed_out);
    EXPECT_FALSE(m.try_lock());
    EXPECT_EQ(never.wait(lock, [] { return false; }, clock::now() + 1ms).error(), wait_error::timed_out);
    EXPECT_TRUE(never.wait(lock, [] { return true; }));
    lock.unlock();
    EXPECT_THROW(static_cast<void>(never.wait(lock)), std::system_error);
    never.notify_one();
    never.notify_all();
  });
}

TEST(local_semaphore, permits_go_to_who_has_waited_longest) {
  on_one_worker([] {
    local::counting_semaphore<3> permits(0);
    EXPECT_FALSE(permits.try_acquire());
    EXPECT_EQ(permits.acquire(clock::now() + 1ms).error(), wait_error::timed_out);
    std::vector<int> order;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 3; ++i) {
      all.push_back(pirn::spawn([&, i] {
        EXPECT_TRUE(permits.acquire());
        order.push_back(i);
      }));
    }
    pirn::this_fiber::yield();
    permits.release(2);
    EXPECT_FALSE(permits.try_acquire());  // they were handed off and are not free
    pirn::this_fiber::yield();
    permits.release(3);
    join_all(all);
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
    EXPECT_TRUE(permits.try_acquire());
    EXPECT_TRUE(permits.try_acquire());
    EXPECT_FALSE(permits.try_acquire());
  });
}

TEST(local_event, manual_lets_all_pass_and_automatic_one) {
  on_one_worker([] {
    local::event all_pass;
    local::event one_passes(pirn::event_reset::automatic);
    int passed = 0;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(pirn::spawn([&] {
        EXPECT_TRUE(all_pass.wait());
        EXPECT_TRUE(one_passes.wait());
        ++passed;
      }));
    }
    pirn::this_fiber::yield();
    all_pass.set();
    EXPECT_TRUE(all_pass.is_set());
    pirn::this_fiber::yield();
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(passed, i);
      one_passes.set();
      EXPECT_FALSE(one_passes.is_set());
      pirn::this_fiber::yield();
    }
    join_all(all);
    one_passes.set();
    one_passes.set();
    EXPECT_TRUE(one_passes.try_wait());
    EXPECT_FALSE(one_passes.try_wait());
    all_pass.reset();
    EXPECT_EQ(all_pass.wait(clock::now() + 1ms).error(), wait_error::timed_out);
  });
}

TEST(local_latch, opens_once) {
  on_one_worker([] {
    local::latch l(3);
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 2; ++i) {
      all.push_back(pirn::spawn([&] { EXPECT_TRUE(l.arrive_and_wait()); }));
    }
    EXPECT_EQ(l.wait(clock::now() + 1ms).error(), wait_error::timed_out);
    EXPECT_FALSE(l.try_wait());
    l.count_down();
    EXPECT_TRUE(l.try_wait());
    join_all(all);
  });
}

TEST(local_wait_group, waits_for_all_that_were_added) {
  on_one_worker([] {
    local::wait_group group;
    EXPECT_TRUE(group.wait());
    int done = 0;
    for (int i = 0; i < 10; ++i) {
      group.add();
      pirn::spawn([&] {
        pirn::this_fiber::yield();
        ++done;
        group.done();
      }).detach();
    }
    EXPECT_EQ(group.count(), 10U);
    EXPECT_TRUE(group.wait());
    EXPECT_EQ(done, 10);
  });
}

class local_channel : public testing::TestWithParam<std::size_t> {};

TEST_P(local_channel, passes_every_value_once_and_in_order) {
  on_one_worker([] {
    local::channel<std::unique_ptr<int>> values(GetParam());
    const int count = scaled(5000);
    pirn::fiber sender = pirn::spawn([&] {
      for (int i = 0; i < count; ++i) {
        EXPECT_TRUE(values.send(std::make_unique<int>(i)));
      }
      values.close();
      EXPECT_EQ(values.send(nullptr).error(), wait_error::closed);
    });
    int next = 0;
    for (const auto& value : values) {
      EXPECT_EQ(*value, next++);
    }
    EXPECT_EQ(next, count);
    sender.join();
    EXPECT_EQ(values.receive().error(), wait_error::closed);
  });
}

TEST_P(local_channel, waits_end_by_deadline_and_stop) {
  on_one_worker([] {
    local::channel<std::string> values(GetParam());
    EXPECT_EQ(values.receive(clock::now() + 1ms).error(), wait_error::timed_out);
    EXPECT_EQ(values.try_receive().error(), wait_error::timed_out);
    pirn::fiber receiver = pirn::spawn([&] { EXPECT_EQ(values.receive().error(), wait_error::stopped); });
    pirn::this_fiber::yield();
    receiver.request_stop();
    if (GetParam() != pirn::unbounded) {
      while (values.try_send("filler")) {
      }
      std::string kept = "a value that is long enough to be on the heap";
      EXPECT_EQ(values.send(std::move(kept), clock::now() + 1ms).error(), wait_error::timed_out);
      EXPECT_EQ(kept, "a value that is long enough to be on the heap");  // NOLINT(bugprone-use-after-move)
    }
    receiver.join();
  });
}

INSTANTIATE_TEST_SUITE_P(capacities, local_channel, testing::Values(0, 1, 7, pirn::unbounded));

/// Stops come from another worker's thread at any moment, deadlines at random, and nothing is lost.
TEST(local, stops_from_elsewhere_lose_no_permit) {
  rig r(2);
  const int rounds = scaled(3000);
  std::optional<local::counting_semaphore<>> permits;
  r.rt.spawn(
          [&] {
            permits.emplace(2);
            std::minstd_rand random(7);
            for (int i = 0; i < rounds; ++i) {
              std::vector<pirn::fiber> all;
              pirn::stop_source source;
              for (int k = 0; k < 4; ++k) {
                const auto how_long = std::chrono::microseconds(random() % 50);
                all.push_back(pirn::spawn(
                    [&, how_long] {
                      if (permits->acquire(clock::now() + how_long)) {
                        pirn::this_fiber::yield();
                        permits->release();
                      }
                    },
                    {.stop = source.get_token()}));
              }
              pirn::fiber stopper = pirn::spawn([&] { source.request_stop(); }, {.worker = 1});
              join_all(all);
              stopper.join();
            }
            EXPECT_TRUE(permits->try_acquire());
            EXPECT_TRUE(permits->try_acquire());
            EXPECT_FALSE(permits->try_acquire());
          },
          {.worker = 0})
      .join();
}

TEST(local_barrier, ends_a_phase_when_all_have_arrived) {
  on_one_worker([] {
    int phases = 0;
    const auto completion = [&]() noexcept { ++phases; };
    local::barrier<decltype(completion)> all(3, completion);
    std::vector<pirn::fiber> fibers;
    for (int i = 0; i < 3; ++i) {
      fibers.push_back(pirn::spawn([&, i] {
        for (int phase = 0; phase < 5 * (i + 1); ++phase) {
          EXPECT_EQ(phases, phase);
          if (phase == 5 * (i + 1) - 1) {
            all.arrive_and_drop();
          } else {
            EXPECT_TRUE(all.arrive_and_wait().has_value());
          }
        }
      }));
    }
    join_all(fibers);
    EXPECT_EQ(phases, 15);
  });
}

TEST(local_barrier, who_gives_up_is_not_expected_again) {
  on_one_worker([] {
    local::barrier<> two(2);
    EXPECT_EQ(two.arrive_and_wait(clock::now() + 1ms).error(), wait_error::timed_out);
    EXPECT_TRUE(two.arrive_and_wait().has_value());  // the fiber that gave up had arrived
    EXPECT_TRUE(two.arrive_and_wait().has_value());  // and now one arrival is enough
  });
}

TEST(local_future, gives_the_result_to_those_that_wait) {
  on_one_worker([] {
    local::promise<std::unique_ptr<int>> promised;
    local::future<std::unique_ptr<int>> result = promised.get_future();
    EXPECT_FALSE(result.is_ready());
    EXPECT_EQ(result.get(clock::now() + 1ms).error(), wait_error::timed_out);
    pirn::fiber gives = pirn::spawn([&] { promised.set_value(std::make_unique<int>(5)); });
    EXPECT_EQ(*result.get(), 5);
    EXPECT_FALSE(result.valid());
    gives.join();

    local::packaged_task<int(int)> twice([](int n) { return n < 0 ? throw std::runtime_error("x") : 2 * n; });
    local::shared_future<int> answer = twice.get_future().share();
    int sum = 0;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 3; ++i) {
      all.push_back(pirn::spawn([&sum, answer] { sum += answer.get(); }));
    }
    pirn::this_fiber::yield();
    twice(4);
    join_all(all);
    EXPECT_EQ(sum, 24);
    EXPECT_THROW(twice(4), pirn::future_error);
    twice.reset();
    answer = twice.get_future().share();
    twice(-1);
    EXPECT_THROW(static_cast<void>(answer.get()), std::runtime_error);
  });
}

TEST(local_future, says_that_nobody_will_provide) {
  on_one_worker([] {
    local::future<void> result;
    pirn::fiber waits;
    {
      local::promise<void> promised;
      result = promised.get_future();
      EXPECT_THROW(static_cast<void>(promised.get_future()), pirn::future_error);
      waits = pirn::spawn([&] { EXPECT_TRUE(result.wait().has_value()); });
      pirn::this_fiber::yield();
    }
    waits.join();
    EXPECT_THROW(result.get(), pirn::future_error);
  });
}

class local_death : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(local_death, another_worker_and_a_plain_thread_are_refused) {
  const auto used_by_two_workers = [] {
    rig r(2);
    local::mutex m;
    r.rt.spawn([&] { static_cast<void>(m.try_lock()); }, {.worker = 0}).join();
    r.rt.spawn([&] { static_cast<void>(m.try_lock()); }, {.worker = 1}).join();
  };
  EXPECT_DEATH(used_by_two_workers(), "an object of pirn::local is used on a worker other than its own");
  local::event e;
  EXPECT_DEATH(e.set(), "an object of pirn::local is used by a plain thread");
  local::wait_queue queue;
  EXPECT_DEATH(queue.notify_one(), "an object of pirn::local is used by a plain thread");
}

TEST_F(local_death, a_migratable_fiber_may_not_wait) {
  const auto waits = [] {
    rig r(1);
    r.rt.spawn(
            [] {
              local::event never;
              static_cast<void>(never.wait());
            },
            {.migratable = true})
        .join();
  };
  EXPECT_DEATH(waits(), "a migratable fiber waits for an object of pirn::local");
}

TEST_F(local_death, misuse_is_named) {
  const auto unlocks = [] { on_one_worker([] { local::mutex().unlock(); }); };
  EXPECT_DEATH(unlocks(), "called on a local mutex that is not locked");
  const auto releases = [] { on_one_worker([] { local::binary_semaphore(1).release(); }); };
  EXPECT_DEATH(releases(), "a local counting_semaphore is released above its maximum");
  EXPECT_DEATH(local::binary_semaphore(2),
               "a local counting_semaphore begins with a count that is negative or above its");
  const auto counts = [] { on_one_worker([] { local::latch(1).count_down(2); }); };
  EXPECT_DEATH(counts(), "a local latch is counted down below zero");
  const auto arrives = [] { on_one_worker([] { static_cast<void>(local::barrier<>(1).arrive(2)); }); };
  EXPECT_DEATH(arrives(), "more arrivals at a local barrier than it expects");
  const auto does = [] { on_one_worker([] { local::wait_group().done(); }); };
  EXPECT_DEATH(does(), "called on a local wait_group more often than items were added");
}

}  // namespace
