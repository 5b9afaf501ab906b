#include "pirn/fiber/timer.hpp"

#include <algorithm>
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
  // Nobody waits for these: firing only disarms them, so that the heap is tested alone.
  pirn::detail::agent nobody(pirn::detail::agent::kind::thread);
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
  queue.cancel(b);  // again: nothing
  queue.fire(at(19));
  EXPECT_TRUE(a.armed());
  queue.fire(at(20));
  EXPECT_FALSE(a.armed());
  EXPECT_EQ(queue.next(), at(30));
  queue.cancel(a);  // has fired
  queue.insert(b);
  queue.cancel(c);
  queue.cancel(b);
  EXPECT_TRUE(queue.empty());
}

TEST(timer_queue, behaves_as_a_sorted_list) {
  pirn::detail::agent nobody(pirn::detail::agent::kind::thread);
  for (const unsigned seed : {1u, 2u, 3u, 4u}) {
    std::mt19937 random(seed);
    const std::size_t count = static_cast<std::size_t>(scaled(3000));
    const std::unique_ptr<timer[]> timers(new timer[count]);
    std::multimap<pirn::platform::time_point, timer*> model;
    timer_queue queue;
    int now = 0;
    const auto forget = [&](timer* t) {
      const auto [from, to] = model.equal_range(t->when);
      model.erase(std::find_if(from, to, [&](const auto& entry) { return entry.second == t; }));
    };
    for (int step = 0; step < scaled(60'000); ++step) {
      timer& t = timers[random() % count];
      switch (random() % 8) {
        case 0:
          now += static_cast<int>(random() % 50);
          queue.fire(at(now));
          while (!model.empty() && model.begin()->first <= at(now)) {
            EXPECT_FALSE(model.begin()->second->armed());
            model.erase(model.begin());
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
          }
      }
      ASSERT_EQ(queue.next(), model.empty() ? pirn::platform::never : model.begin()->first) << "step " << step;
    }
    for (const auto& [when, t] : model) {
      EXPECT_TRUE(t->armed());
    }
  }
}

TEST(timer_queue, hundreds_of_thousands) {
  pirn::detail::agent nobody(pirn::detail::agent::kind::thread);
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
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    std::mt19937 random(3);
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
  if (all_in_time) {  // who goes to sleep when others have woken already is in no order
    EXPECT_EQ(out_of_order, 0);
  }
}

}  // namespace
