// The timer queue alone and against a sorted list, and many fibers that sleep.
#include "pirn/fiber/expert/timer.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::timer;
using pirn::timer_queue;

pirn::platform::time_point at(int t) { return pirn::platform::time_point(std::chrono::microseconds(t)); }

TEST(timer_queue, next_is_the_earliest) {
  // No agent waits for these: firing only disarms them, so that the heap is tested alone.
  pirn::detail::agent nobody(pirn::detail::agent_kind::thread);
  timer_queue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.next(), pirn::platform::never);
  timer a{.when = at(20), .wake = {nobody, 1}};
  timer b{.when = at(10), .wake = {nobody, 1}};
  timer c{.when = at(30), .wake = {nobody, 1}};
  for (timer* t : {&a, &b, &c}) {
    queue.insert(*t);
  }
  EXPECT_EQ(queue.next(), at(10));
  queue.cancel(b);
  EXPECT_EQ(queue.next(), at(20));
  queue.cancel(b);  // again, without effect
  queue.fire(at(19));
  EXPECT_TRUE(a.armed());
  queue.fire(at(20));
  EXPECT_FALSE(a.armed());
  EXPECT_EQ(queue.next(), at(30));
  queue.cancel(a);  // it has fired
  queue.insert(b);
  queue.cancel(c);
  queue.cancel(b);
  EXPECT_TRUE(queue.empty());
}

struct model_case {
  unsigned seed;
  std::uint32_t most;   // timers for which the queue may have memory
  unsigned look_every;  // steps, on average
};

class timer_queue_against_a_model : public testing::TestWithParam<model_case> {};

TEST_P(timer_queue_against_a_model, behaves_as_a_sorted_list) {
  pirn::detail::agent nobody(pirn::detail::agent_kind::thread);
  std::mt19937 random(GetParam().seed);
  const std::size_t count = static_cast<std::size_t>(scaled(3000));
  const std::unique_ptr<timer[]> timers(new timer[count]);
  std::multimap<pirn::platform::time_point, timer*> model;
  timer_queue queue(GetParam().most);
  int now = 0;
  const auto forget = [&](timer* t) {
    const auto [from, to] = model.equal_range(t->when);
    model.erase(std::find_if(from, to, [&](const auto& entry) { return entry.second == t; }));
  };
  for (int step = 0; step < scaled(40'000); ++step) {
    timer& t = timers[random() % count];
    switch (random() % 8) {
      case 0:
        if (random() % GetParam().look_every == 0) {
          now += static_cast<int>(random() % (50 * GetParam().look_every));
          queue.fire(at(now));
          while (!model.empty() && model.begin()->first <= at(now)) {
            EXPECT_FALSE(model.begin()->second->armed());
            model.erase(model.begin());
          }
        }
        break;
      case 1:
      case 2:
      case 3:
        if (t.armed()) {
          forget(&t);
        }
        queue.cancel(t);
        break;
      default:
        if (!t.armed()) {
          t.when = at(now + static_cast<int>(random() % 1000));
          t.wake = {nobody, 1};
          queue.insert(t);
          model.emplace(t.when, &t);
          if (random() % 2 == 0) {  // the newest of all
            forget(&t);
            queue.cancel(t);
          }
        }
    }
    ASSERT_EQ(queue.empty(), model.empty());
    if (random() % GetParam().look_every == 0) {
      ASSERT_EQ(queue.next(), model.empty() ? pirn::platform::never : model.begin()->first) << "step " << step;
    }
  }
  for (const auto& [when, t] : model) {
    EXPECT_TRUE(t->armed());
  }
}

INSTANTIATE_TEST_SUITE_P(cases, timer_queue_against_a_model,
                         testing::Values(model_case{1, 1u << 20, 1}, model_case{2, 1u << 20, 7},
                                         model_case{3, 1u << 20, 300}, model_case{4, 40, 3}, model_case{5, 0, 3}));

/// Records the order in which timers fire, and may do something else as well.
struct noting_timer : pirn::call_timer {
  explicit noting_timer(int due, int number, std::vector<int>& order) : self(number), fired(order) {
    when = at(due);
    call = [](pirn::call_timer& now_due) noexcept {
      auto& mine = static_cast<noting_timer&>(now_due);
      mine.fired.push_back(mine.self);
      if (mine.also) {
        mine.also();
      }
    };
  }
  int self;
  std::vector<int>& fired;
  std::function<void()> also;
};

TEST(timer_queue, fires_in_order_of_time_whether_it_has_memory_or_not) {
  for (const std::uint32_t most : {1u << 20, 5u, 0u}) {
    std::vector<int> order;
    timer_queue queue(most);
    std::vector<std::unique_ptr<noting_timer>> all;
    for (int i = 0; i < 40; ++i) {
      const int when = i * 7 % 40;
      all.push_back(std::make_unique<noting_timer>(when, when, order));
      queue.insert(*all.back());
    }
    queue.fire(at(24));
    EXPECT_EQ(order.size(), 25u);
    queue.fire(at(100));
    ASSERT_EQ(order.size(), 40u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    EXPECT_TRUE(queue.empty());
  }
}

TEST(timer_queue, one_that_fires_may_cancel_and_insert_others) {
  std::vector<int> order;
  timer_queue queue;
  noting_timer first(1, 1, order);
  noting_timer second(2, 2, order);
  noting_timer third(3, 3, order);
  noting_timer late(2, 4, order);
  first.also = [&] {
    queue.cancel(second);
    queue.insert(late);
  };
  for (noting_timer* t : {&third, &first, &second}) {
    queue.insert(*t);
  }
  queue.fire(at(5));
  EXPECT_EQ(order, (std::vector<int>{1, 3, 4}));
  EXPECT_FALSE(second.armed());
  EXPECT_TRUE(queue.empty());
  queue.insert(second);
  queue.fire(at(5));
  EXPECT_EQ(order.back(), 2);
}

TEST(timer_queue, a_limit_leaves_the_rest_for_the_next_call) {
  for (const std::uint32_t most : {1u << 20, 0u}) {
    std::vector<int> order;
    timer_queue queue(most);
    std::vector<std::unique_ptr<noting_timer>> all;
    for (int i = 0; i < 200; ++i) {
      all.push_back(std::make_unique<noting_timer>(i, i, order));
      queue.insert(*all.back());
    }
    queue.fire(at(1000), timer_queue::at_a_tick);
    EXPECT_EQ(order.size(), timer_queue::at_a_tick);
    EXPECT_EQ(queue.next(), at(static_cast<int>(timer_queue::at_a_tick)));
    while (!queue.empty()) {
      queue.fire(at(1000), timer_queue::at_a_tick);
    }
    EXPECT_EQ(order.size(), 200u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  }
}

TEST(timer_queue, a_thousand_due_at_once_do_not_hold_the_others_up) {
  on_one_worker([] {
    constexpr int count = 1000;
    int woken = 0;
    const auto when = clock::now() + 100ms;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(pirn::spawn([&] {
        static_cast<void>(pirn::this_fiber::sleep_until(when));
        ++woken;
      }));
    }
    static_cast<void>(pirn::this_fiber::sleep_until(when - 5ms));
    int most = 0;
    while (woken < count) {
      const int before = woken;
      pirn::this_fiber::yield();
      most = std::max(most, woken - before);
    }
    // Where turns are long, each is a tick that fires as many, before the fibers of the last one have run.
    EXPECT_LE(most, 4 * slowdown * static_cast<int>(timer_queue::at_a_tick));
    join_all(all);
  });
}

TEST(timer_queue, hundreds_of_thousands) {
  pirn::detail::agent nobody(pirn::detail::agent_kind::thread);
  const std::size_t count = static_cast<std::size_t>(scaled(300'000));
  const std::unique_ptr<timer[]> timers(new timer[count]);
  timer_queue queue;
  std::mt19937 random(7);
  for (std::size_t i = 0; i < count; ++i) {
    timers[i].when = at(static_cast<int>(random() % 1'000'000));
    timers[i].wake = {nobody, 1};
    queue.insert(timers[i]);
  }
  for (std::size_t i = 0; i < count; i += 2) {
    queue.cancel(timers[i]);
  }
  auto last = at(0);
  while (!queue.empty()) {
    ASSERT_GE(queue.next(), last);
    last = queue.next();
    queue.fire(last);
  }
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_FALSE(timers[i].armed());
  }
}

TEST(timer_queue, many_sleepers) {
  rig r(1, {.stack_size = 8192 * static_cast<std::size_t>(slowdown)});
  const int count = scaled(50'000);
  int asleep = 0;
  int woken = 0;
  int out_of_order = 0;
  bool all_in_time = false;
  std::mt19937 random(3);  // not on a small stack: it takes 5 KB
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    auto last = clock::time_point{};
    const auto base = clock::now() + 500ms;
    for (int i = 0; i < count; ++i) {
      const auto when = base + std::chrono::microseconds(random() % 100'000);
      all.push_back(pirn::spawn([&, when] {
        all_in_time = ++asleep == count && clock::now() < base;
        static_cast<void>(pirn::this_fiber::sleep_until(when));
        EXPECT_GE(clock::now(), when);
        ++woken;
        out_of_order += when < last ? 1 : 0;
        last = when;
      }));
    }
    join_all(all);
  });
  EXPECT_EQ(woken, count);
  if (all_in_time) {  // a fiber that sleeps only after others have woken is in no order
    EXPECT_EQ(out_of_order, 0);
  }
}

}  // namespace
