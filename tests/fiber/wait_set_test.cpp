// One wait in several wait queues.
#include "pirn/fiber/expert/wait_set.hpp"

#include <array>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::wait_entry;
using pirn::wait_queue;
using pirn::wake_reason;

/// A wait in some queues.
struct several {
  template <class... Queues>
  explicit several(Queues&... queues) : entries{wait_entry{&queues.own_lock(), &queues.list()}...} {
    for (std::size_t i = 0; i < sizeof...(Queues); ++i) {
      all.add(entries[i]);
    }
  }
  wake_reason wait(pirn::wait_options options = {}) {
    all.lock();
    return all.wait(options);
  }
  [[nodiscard]] std::string claimed() const {
    std::string result;
    for (const wait_entry& entry : entries) {
      if (entry.lock != nullptr) {
        result += entry.node.claimed ? '1' : '0';
      }
    }
    return result;
  }
  std::array<wait_entry, 4> entries;
  pirn::wait_set all;
};

bool waited_for(wait_queue& queue) {
  const pirn::platform::spin_guard guard(queue);
  return !queue.empty();
}

TEST(wait_set, any_of_the_lists_ends_the_wait_and_none_keeps_a_waiter) {
  rig r(2);
  std::array<wait_queue, 3> queues;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    pirn::fiber f = r.rt.spawn([&] {
      several wait(queues[0], queues[1], queues[2]);
      EXPECT_EQ(wait.wait(), wake_reason::notified);
      EXPECT_EQ(wait.claimed(), i == 0 ? "100" : i == 1 ? "010" : "001");
    });
    ASSERT_TRUE(eventually([&] { return waited_for(queues[0]) && waited_for(queues[1]) && waited_for(queues[2]); }));
    EXPECT_TRUE(queues[i].notify_one());
    f.join();
    for (wait_queue& queue : queues) {
      EXPECT_TRUE(queue.empty());
    }
  }
}

TEST(wait_set, the_wait_takes_one_of_several_notifications) {
  rig r(2);
  wait_queue a;
  wait_queue b;
  std::atomic<int> other = 0;
  const int rounds = scaled(2000);
  for (int i = 0; i < rounds; ++i) {
    // Exactly one notifier succeeds, though the wait is in both lists.
    pirn::fiber both = r.rt.spawn([&] { EXPECT_EQ(several(a, b).wait(), wake_reason::notified); }, {.worker = 0});
    ASSERT_TRUE(eventually([&] { return waited_for(a) && waited_for(b); }));
    pirn::fiber notifier = r.rt.spawn([&] { other += a.notify_one() ? 1 : 0; }, {.worker = 1});
    const bool mine = b.notify_one();
    notifier.join();
    both.join();
    EXPECT_EQ(other.exchange(0) + (mine ? 1 : 0), 1);
  }
}

TEST(wait_set, one_list_may_be_there_twice) {
  wait_queue a;
  std::jthread thread([&] {
    several wait(a, a);
    EXPECT_EQ(wait.wait(), wake_reason::notified);
    EXPECT_EQ(wait.claimed(), "10");
  });
  ASSERT_TRUE(eventually([&] { return waited_for(a); }));
  EXPECT_TRUE(a.notify_one());
  thread.join();
  EXPECT_FALSE(a.notify_one());
}

TEST(wait_set, a_stop_and_a_deadline_end_it) {
  rig r(1);
  wait_queue a;
  wait_queue b;
  r.rt.run([&] {
    several wait(a, b);
    EXPECT_EQ(wait.wait({.deadline = clock::now() + 1ms}), wake_reason::timed_out);
    EXPECT_EQ(wait.claimed(), "00");
    pirn::fiber f = pirn::spawn([&] {
      several stopped(b, a);
      EXPECT_EQ(stopped.wait(), wake_reason::stopped);
      EXPECT_EQ(stopped.wait(), wake_reason::stopped);  // without suspending
    });
    pirn::this_fiber::yield();
    f.request_stop();
    f.join();
    EXPECT_TRUE(a.empty() && b.empty());
  });
}

}  // namespace
