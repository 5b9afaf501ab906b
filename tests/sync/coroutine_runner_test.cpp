// The order in which a worker resumes the tasks that are ready, and the fibers that do it.
#include "pirn/fiber/detail/coroutine_runner.hpp"

#include <vector>

#include "fiber/support.hpp"
#include "pirn/fiber/context_value.hpp"
#include "pirn/fiber/spawned.hpp"
#include "pirn/sync/co.hpp"
#include "pirn/sync/mutex.hpp"

namespace {

using namespace pirn_test;
using pirn::await;
using pirn::task;
namespace co = pirn::co;

TEST(task, those_that_only_yield_leave_the_fibers_their_turns) {
  rig r(1);
  r.rt.run([] {
    bool seen = false;
    int yields = 0;
    const auto waits = [&]() -> task<> {
      for (; !seen && yields < 100'000; ++yields) {
        co_await co::yield();
      }
    };
    pirn::scope s;
    for (int i = 0; i < 3; ++i) {
      s.spawn([&] { await(waits()); });
    }
    pirn::this_fiber::yield();
    pirn::this_fiber::yield();  // until all of them run in the worker's fiber for tasks
    const int before = yields;
    for (int i = 0; i < 5; ++i) {
      pirn::this_fiber::yield();
    }
    EXPECT_GT(yields, before);
    EXPECT_LE(yields - before, 5 * 8) << "no more than eight have a turn between two of the fiber's";
    seen = true;
    s.join();
  });
}

TEST(task, awaited_by_a_call_in_a_task_runs_no_others_on_top_of_that) {
  rig r(1);
  r.rt.run([] {
    bool done = false;
    pirn::fiber_id outer;
    const auto inner = []() -> task<> {
      for (int i = 0; i < 20; ++i) {
        co_await co::yield();
      }
    };
    const auto awaits = [&]() -> task<> {
      co_await co::yield();
      outer = pirn::this_fiber::get_id();
      await(inner());
      EXPECT_EQ(pirn::this_fiber::get_id(), outer);
      done = true;
    };
    const auto other = [&]() -> task<> {
      while (!done) {
        EXPECT_NE(pirn::this_fiber::get_id(), outer) << "it would end in the middle of the other one's call";
        co_await co::yield();
      }
    };
    pirn::scope s;
    s.spawn([&] { await(awaits()); });
    s.spawn([&] { await(other()); });
    s.join();
  });
}

TEST(task, that_polls_by_calls_lets_those_of_its_worker_run) {
  rig r(1);
  r.rt.run([] {
    pirn::mutex lock;
    int polls = 0;
    const auto holds = [&]() -> task<> {
      lock.lock();
      co_await co::yield();
      lock.unlock();
    };
    const auto polls_for_it = [&]() -> task<> {
      while (!lock.try_lock()) {
        pirn::this_fiber::yield();
        if (++polls == 20'000'000) {
          ADD_FAILURE() << "the task that holds the lock does not run";
          co_return;
        }
      }
      lock.unlock();
    };
    pirn::spawned<> first = co::spawn(holds());
    std::vector<pirn::spawned<>> others;
    for (int i = 0; i < 3; ++i) {
      others.push_back(co::spawn(polls_for_it()));
    }
    first.join();
    for (pirn::spawned<>& each : others) {
      each.join();
    }
  });
}

TEST(task, suspended_and_resumed_with_its_own_values_beside_others) {
  static pirn::context_value<int> number;
  rig r(1);
  r.rt.run([] {
    const auto sees = [](const int* value) -> task<> {
      for (int i = 0; i < 30; ++i) {
        EXPECT_EQ(number.get(), value);
        co_await co::yield();
        EXPECT_EQ(number.get(), value);
      }
    };
    pirn::scope s;
    for (int i = 0; i < 3; ++i) {
      s.spawn([&, i] {
        await(sees(nullptr));
        const pirn::context_value<int>::binding bound(number, i);
        await(sees(number.get()));
      });
    }
    s.join();
  });
}

}  // namespace
