// The run queue and the inbox alone, without contexts: nodes that are never resumed.
#include "pirn/fiber/detail/run_queue.hpp"
#include "pirn/fiber/detail/inbox.hpp"

#include <array>
#include <deque>
#include <random>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::detail::inbox;
using pirn::detail::run_node;
using pirn::detail::run_queue;

/// A fiber without a home that is never resumed.
struct idle_fiber : pirn::detail::fiber_control {
  idle_fiber() : fiber_control(1) { assign_worker(nullptr); }
};

class run_queue_alone : public testing::Test {
 protected:
  static constexpr unsigned lifo_turns = 3;
  static constexpr unsigned high_priority_turns = 4;
  run_queue queue{lifo_turns, high_priority_turns};
  std::array<idle_fiber, 12> nodes;

  /// Returns the index of a node, or -1 for the scheduler.
  int number(const run_node* node) {
    return node == queue.scheduler() ? -1 : static_cast<int>(static_cast<const idle_fiber*>(node) - nodes.data());
  }
  void push(std::initializer_list<int> which) {
    for (const int i : which) {
      queue.push_back(&nodes[static_cast<std::size_t>(i)]);
    }
  }
  void wake(int which) { queue.push_woken(&nodes[static_cast<std::size_t>(which)]); }
  void push_high(std::initializer_list<int> which) {
    for (const int i : which) {
      idle_fiber& f = nodes[static_cast<std::size_t>(i)];
      f.set_high_priority(true);
      queue.push(&f);
    }
  }
  int leave() { return number(queue.leave()); }
  int yield() { return number(queue.woken() != 0 ? queue.rotate_slow() : queue.rotate()); }
};

TEST_F(run_queue_alone, is_first_in_first_out) {
  EXPECT_FALSE(queue.has_ready());
  push({0, 1, 2});
  EXPECT_TRUE(queue.has_ready());
  EXPECT_EQ(leave(), 0);  // the scheduler leaves
  EXPECT_EQ(yield(), 1);
  EXPECT_EQ(yield(), 2);
  EXPECT_EQ(yield(), 0);
  push({3});  // behind all others
  EXPECT_EQ(yield(), 1);
  EXPECT_EQ(yield(), 2);
  EXPECT_EQ(yield(), 3);
  EXPECT_EQ(yield(), 0);
  EXPECT_EQ(leave(), 1);
  EXPECT_EQ(leave(), 2);
  EXPECT_EQ(leave(), 3);
  EXPECT_EQ(yield(), 3);   // alone
  EXPECT_EQ(leave(), -1);  // nothing left
  EXPECT_EQ(leave(), -1);
}

TEST_F(run_queue_alone, who_was_just_woken_runs_first_newest_first) {
  push({0, 1});
  EXPECT_EQ(leave(), 0);
  wake(2);
  wake(3);
  EXPECT_EQ(leave(), 3);
  EXPECT_EQ(leave(), 2);
  EXPECT_EQ(leave(), 1);
  wake(4);
  EXPECT_EQ(yield(), 4);  // in front of the one that yields
  EXPECT_EQ(leave(), 1);
  EXPECT_EQ(leave(), -1);
}

TEST_F(run_queue_alone, no_more_than_the_budget_in_a_row_while_others_are_ready) {
  push({0, 1});
  EXPECT_EQ(leave(), 0);
  wake(4);
  EXPECT_EQ(leave(), 4);
  for (int i = 0; i < 2; ++i) {  // each wakes the other and waits
    wake(5 - i);
    EXPECT_EQ(leave(), 5 - i);
  }
  wake(5);
  EXPECT_EQ(leave(), 1);  // the budget of 3 is reached
  EXPECT_EQ(leave(), 5);  // and begins anew
  wake(6);
  EXPECT_EQ(leave(), 6);
  EXPECT_EQ(leave(), -1);
}

TEST_F(run_queue_alone, the_budget_also_holds_against_a_fiber_that_yields) {
  push({0, 1});
  EXPECT_EQ(leave(), 0);
  for (int i = 2; i < 7; ++i) {
    wake(i);
  }
  EXPECT_EQ(yield(), 6);
  EXPECT_EQ(leave(), 5);
  EXPECT_EQ(leave(), 4);
  EXPECT_EQ(leave(), 1);
  EXPECT_EQ(leave(), 3);
  EXPECT_EQ(leave(), 0);
  EXPECT_EQ(leave(), 2);  // fiber 2 lay below fiber 3 when the budget was reached
  EXPECT_EQ(leave(), -1);
}

TEST_F(run_queue_alone, without_anybody_waiting_there_is_no_budget) {
  push({0});
  EXPECT_EQ(leave(), 0);
  for (int i = 0; i < 20; ++i) {
    wake(1 + i % 2);
    EXPECT_EQ(leave(), 1 + i % 2);
  }
}

TEST_F(run_queue_alone, the_scheduler_comes_in_between) {
  push({0, 1});
  EXPECT_EQ(leave(), 0);
  wake(2);
  EXPECT_EQ(number(queue.pause()), -1);  // 0 yields to the scheduler
  EXPECT_TRUE(queue.has_ready());
  EXPECT_EQ(leave(), 2);
  EXPECT_EQ(number(queue.leave_to_scheduler()), -1);  // 2 waits
  EXPECT_EQ(leave(), 1);
  EXPECT_EQ(leave(), 0);
  EXPECT_EQ(number(queue.leave_to_scheduler()), -1);
  EXPECT_FALSE(queue.has_ready());
}

TEST_F(run_queue_alone, gives_some_away_and_keeps_the_order_of_the_others) {
  const auto take = [this](std::initializer_list<int> which) {
    std::vector<int> taken;
    queue.remove_if(
        [&](const run_node* node) { return std::find(which.begin(), which.end(), number(node)) != which.end(); },
        [&](run_node* node) { taken.push_back(number(node)); });
    return taken;
  };
  EXPECT_EQ(take({0}), std::vector<int>{});
  push({0, 1, 2, 3});
  wake(4);
  wake(5);
  wake(6);
  EXPECT_EQ(take({0, 3, 5, 7}), (std::vector<int>{0, 3, 5}));
  EXPECT_EQ(leave(), 6);
  EXPECT_EQ(leave(), 4);
  EXPECT_EQ(leave(), 1);
  EXPECT_EQ(leave(), 2);
  EXPECT_EQ(leave(), -1);
  push({0});
  wake(1);
  push_high({8});
  EXPECT_EQ(take({0, 1, 8}), (std::vector<int>{0, 1}));
  EXPECT_EQ(leave(), 8);
  EXPECT_EQ(leave(), -1);
  EXPECT_FALSE(queue.has_ready());
}

TEST_F(run_queue_alone, high_priority_comes_first_in_order_of_age) {
  push({0, 1});
  wake(2);
  push_high({5, 6});
  EXPECT_EQ(leave(), 5);
  EXPECT_EQ(leave(), 6);
  EXPECT_EQ(leave(), 2);
  EXPECT_EQ(leave(), 0);
  push_high({5});
  EXPECT_EQ(yield(), 5);
  EXPECT_EQ(leave(), 1);
  EXPECT_EQ(leave(), 0);
  EXPECT_EQ(queue.woken(), 0u);  // the count is back at 0
  EXPECT_EQ(leave(), -1);
  EXPECT_FALSE(queue.has_ready());
}

TEST_F(run_queue_alone, high_priority_has_a_budget) {
  push({0, 1});
  push_high({5, 6});
  for (int round = 0; round < 3; ++round) {
    for (unsigned i = 0; i < high_priority_turns; ++i) {
      EXPECT_EQ(round + i == 0 ? leave() : yield(), 5 + static_cast<int>(i) % 2);
    }
    EXPECT_EQ(yield(), round % 2);
  }
}

// Compares the queue with the rules of docs/scheduler.md, written down again in the simplest way.
TEST_F(run_queue_alone, behaves_as_the_rules_say) {
  std::mt19937 random(11);
  std::deque<int> ring;
  std::deque<int> high;
  std::vector<int> woken;
  std::deque<int> idle;
  int running = -1;
  unsigned lifo_polls = 0;
  unsigned high_priority_polls = 0;
  const auto is_high = [&](int i) { return i >= 0 && nodes[static_cast<std::size_t>(i)].has_high_priority(); };
  const auto high_may = [&] { return high_priority_polls < high_priority_turns || (ring.empty() && woken.empty()); };
  const auto take = [](auto& from) {
    const int first = from.front();
    from.pop_front();
    return first;
  };
  const auto choose = [&](int otherwise) {
    if (!high.empty() && high_may()) {
      ++high_priority_polls;
      return take(high);
    }
    high_priority_polls = 0;
    if (!woken.empty() && (lifo_polls < lifo_turns || (ring.empty() && woken.size() == 1))) {
      lifo_polls = lifo_polls < lifo_turns ? lifo_polls + 1 : 1;  // anew: no fiber had to wait for it
      const int newest = woken.back();
      woken.pop_back();
      return newest;
    }
    lifo_polls = 0;
    for (; woken.size() > 1; woken.erase(woken.begin())) {
      ring.push_back(woken.front());
    }
    return ring.empty() ? otherwise : take(ring);
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    idle.push_back(static_cast<int>(i));
  }
  for (int step = 0; step < 50'000; ++step) {
    ASSERT_EQ(queue.has_ready(), !(ring.empty() && high.empty() && woken.empty())) << step;
    switch (random() % 8) {
      case 0:
      case 1:  // a fiber becomes ready
        if (!idle.empty()) {
          const int i = take(idle);
          idle_fiber& f = nodes[static_cast<std::size_t>(i)];
          const auto kind = random() % 3;
          f.set_high_priority(kind == 0);
          if (kind == 1) {
            queue.push_woken(&f);
            woken.push_back(i);
          } else {
            queue.push(&f);
            (kind == 0 ? high : ring).push_back(i);
          }
        }
        break;
      case 2:  // the running fiber changes its priority
        if (running >= 0) {
          const bool to = !is_high(running);
          nodes[static_cast<std::size_t>(running)].set_high_priority(to);
          if (to) {
            queue.running_is_high_now();
          }
        }
        break;
      case 3:  // it waits
      case 4: {
        const int before = running;
        running = choose(-1);
        if (before >= 0) {
          idle.push_back(before);
        }
        ASSERT_EQ(leave(), running) << step;
        break;
      }
      case 5:  // it waits, and the scheduler runs
        if (running >= 0) {
          idle.push_back(running);
          running = -1;
          ASSERT_EQ(number(queue.leave_to_scheduler()), -1) << step;
        }
        break;
      case 6:  // it yields, and the scheduler runs
        if (running >= 0) {
          (is_high(running) ? high : ring).push_back(running);
          running = -1;
          ASSERT_EQ(number(queue.pause()), -1) << step;
        }
        break;
      default:  // it yields
        if (running >= 0) {
          const int before = running;
          if (!is_high(before)) {
            if (queue.woken() == 0) {  // the fast path, which leaves all counts as they are
              ring.push_back(before);
              running = take(ring);
            } else {
              running = choose(before);
              if (running != before) {
                ring.push_back(before);
              }
            }
          } else if (high.empty() && high_may()) {
            ++high_priority_polls;
          } else {
            running = choose(before);
            high.push_back(before);
          }
          ASSERT_EQ(yield(), running) << step;
        }
    }
  }
}

TEST(inbox, gives_what_came_oldest_first) {
  inbox box;
  std::array<run_node, 4> nodes;
  EXPECT_TRUE(box.empty());
  EXPECT_EQ(box.take_all(), nullptr);
  for (run_node& n : nodes) {
    EXPECT_FALSE(box.push(&n));
  }
  EXPECT_FALSE(box.empty());
  const run_node* taken = box.take_all();
  for (const run_node& n : nodes) {
    ASSERT_EQ(taken, &n);
    taken = taken->next;
  }
  EXPECT_EQ(taken, nullptr);
  EXPECT_TRUE(box.empty());
}

TEST(inbox, a_sleeper_is_told_once_and_never_sleeps_on_something) {
  inbox box;
  std::array<run_node, 2> nodes;
  EXPECT_TRUE(box.set_parked_mark());
  EXPECT_TRUE(box.empty());
  EXPECT_TRUE(box.push(&nodes[0]));   // must wake the sleeper
  EXPECT_FALSE(box.push(&nodes[1]));  // the first push has woken it
  box.clear_parked_mark();
  EXPECT_FALSE(box.set_parked_mark());
  EXPECT_EQ(box.take_all(), &nodes[0]);
  EXPECT_TRUE(box.set_parked_mark());
  box.clear_parked_mark();
  EXPECT_TRUE(box.empty());
  EXPECT_FALSE(box.push(&nodes[0]));
  EXPECT_FALSE(box.set_parked_mark());
}

TEST(inbox, loses_nothing_between_threads) {
  inbox box;
  const int each = scaled(50'000);
  const int count = 3 * each;
  std::vector<run_node> nodes(static_cast<std::size_t>(count));
  std::atomic<std::uint32_t> told = 0;
  std::vector<std::jthread> senders;
  for (int s = 0; s < 3; ++s) {
    senders.emplace_back([&, s] {
      for (int i = 0; i < each; ++i) {
        const int index = s * each + i;
        if (box.push(&nodes[static_cast<std::size_t>(index)])) {
          ++told;
          told.notify_one();
        }
      }
    });
  }
  std::array<int, 3> next = {};
  int received = 0;
  while (received < count) {
    for (const run_node* n = box.take_all(); n != nullptr; n = n->next) {
      const int index = static_cast<int>(n - nodes.data());
      const auto sender = static_cast<std::size_t>(index / each);
      ASSERT_EQ(index % each, next[sender]);  // in the order of each sender
      ++next[sender];
      ++received;
    }
    const std::uint32_t before = told;
    if (received < count && box.set_parked_mark()) {
      told.wait(before);
      box.clear_parked_mark();
    }
  }
}

}  // namespace
