// The run queue and the inbox alone, without contexts: nodes that are never resumed.
#include "pirn/fiber/detail/run_queue.hpp"

#include <array>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::detail::inbox;
using pirn::detail::run_node;
using pirn::detail::run_queue;

class run_queue_alone : public testing::Test {
 protected:
  run_queue queue{3};
  std::array<run_node, 8> nodes;

  /// The index of a node, or -1 for the scheduler.
  int number(const run_node* node) { return node == queue.scheduler() ? -1 : static_cast<int>(node - nodes.data()); }
  void push(std::initializer_list<int> which) {
    for (const int i : which) {
      queue.push_back(&nodes[static_cast<std::size_t>(i)]);
    }
  }
  void wake(int which) { queue.push_woken(&nodes[static_cast<std::size_t>(which)]); }
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

TEST_F(run_queue_alone, no_more_than_the_bound_in_a_row_while_others_are_ready) {
  push({0, 1});
  EXPECT_EQ(leave(), 0);
  wake(4);
  EXPECT_EQ(leave(), 4);
  for (int i = 0; i < 2; ++i) {  // each wakes the other and waits
    wake(5 - i);
    EXPECT_EQ(leave(), 5 - i);
  }
  wake(5);
  EXPECT_EQ(leave(), 1);  // the bound of 3 is reached
  EXPECT_EQ(leave(), 5);  // and begins anew
  wake(6);
  EXPECT_EQ(leave(), 6);
  EXPECT_EQ(leave(), -1);
}

TEST_F(run_queue_alone, the_bound_also_holds_against_a_fiber_that_yields) {
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
  EXPECT_EQ(leave(), 2);
  EXPECT_EQ(leave(), 0);
  EXPECT_EQ(leave(), -1);
}

TEST_F(run_queue_alone, without_anybody_waiting_there_is_no_bound) {
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
  EXPECT_TRUE(box.park());
  EXPECT_TRUE(box.empty());
  EXPECT_TRUE(box.push(&nodes[0]));   // tells the sleeper
  EXPECT_FALSE(box.push(&nodes[1]));  // has been told
  box.unpark();
  EXPECT_FALSE(box.park());
  EXPECT_EQ(box.take_all(), &nodes[0]);
  EXPECT_TRUE(box.park());
  box.unpark();
  EXPECT_TRUE(box.empty());
  EXPECT_FALSE(box.push(&nodes[0]));
  EXPECT_FALSE(box.park());
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
    if (received < count && box.park()) {
      told.wait(before);
      box.unpark();
    }
  }
}

}  // namespace
