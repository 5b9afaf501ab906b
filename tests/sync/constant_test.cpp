// Types that std constant-initializes are so here too: a global can be used before any constructor has run.
#include "fiber/support.hpp"
#include "pirn/sync/barrier.hpp"
#include "pirn/sync/condition_variable.hpp"
#include "pirn/sync/event.hpp"
#include "pirn/sync/expert/biased_mutex.hpp"
#include "pirn/sync/latch.hpp"
#include "pirn/sync/mutex.hpp"
#include "pirn/sync/once.hpp"
#include "pirn/sync/recursive_mutex.hpp"
#include "pirn/sync/semaphore.hpp"
#include "pirn/sync/shared_mutex.hpp"
#include "pirn/sync/wait_group.hpp"

namespace {

struct all_of_them {
  constexpr all_of_them() = default;

  pirn::mutex mutex;
  pirn::biased_mutex biased;
  pirn::recursive_mutex recursive;
  pirn::shared_mutex shared;
  pirn::condition_variable condition;
  pirn::counting_semaphore<4> semaphore{2};
  pirn::latch latch{1};
  pirn::barrier<> barrier{1};
  pirn::event event{pirn::event_reset::automatic};
  pirn::wait_group group{1};
  pirn::once_flag once;
};

constinit all_of_them global;

TEST(constant, globals_work) {
  pirn_test::on_one_worker([] {
    {
      const std::scoped_lock all(global.mutex, global.biased, global.recursive, global.shared);
      global.condition.notify_all();
    }
    EXPECT_TRUE(global.semaphore.try_acquire());
    EXPECT_TRUE(global.semaphore.try_acquire());
    EXPECT_FALSE(global.semaphore.try_acquire());
    global.latch.count_down();
    EXPECT_TRUE(global.latch.try_wait());
    EXPECT_TRUE(global.barrier.arrive_and_wait());
    global.event.set();
    EXPECT_TRUE(global.event.try_wait());
    EXPECT_EQ(global.group.count(), 1U);
    int calls = 0;
    call_once(global.once, [&] { ++calls; });
    EXPECT_EQ(calls, 1);
  });
}

}  // namespace
