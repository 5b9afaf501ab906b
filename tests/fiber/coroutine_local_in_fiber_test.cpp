// coroutine_local::get() in coroutines and swapped tasks of fibers: the innermost body counts.
#include <memory>
#include <stdexcept>
#include <vector>

#include "coro/stack_swap_support.hpp"
#include "fiber/support.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"

namespace {

using namespace pirn_test;
using pirn::swap_error;
using swap_support::world;

const pirn::coroutine_local<int> number(5);

[[gnu::noinline]] int deep_number(int depth) {
  char room[128];
  const int found = depth == 0 ? number.get() : deep_number(depth - 1);
  asm volatile("" : : "r"(&room[0]) : "memory");  // not a loop
  return found;
}

/// Begins with no value, and keeps `mine` over turns of others.
template <class LetOthersRun>
void keeps(int mine, LetOthersRun&& let_others_run) {
  EXPECT_EQ(number.find(), nullptr);
  number.get() = mine;
  for (int i = 0; i < 3; ++i) {
    let_others_run();
    EXPECT_EQ(deep_number(i), mine);
    pirn::this_fiber::yield();
    EXPECT_EQ(deep_number(2 * i), mine);
  }
}

void tasks_keep(int first) {
  world w;
  for (int i = 0; i < 3; ++i) {
    w.spawn([&w, mine = first + i] { keeps(mine, [&w] { w.yield(); }); });
  }
  EXPECT_EQ(w.swap.run(), swap_error::none);
}

void in_fibers(int amount, void (*body)(int)) {
  rig r(2);
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    for (int i = 0; i < amount; ++i) {
      all.push_back(pirn::spawn([=] {
        EXPECT_EQ(number.find(), nullptr);
        EXPECT_THROW(static_cast<void>(number.get()), std::logic_error);
        body(1000 * i);
        EXPECT_EQ(number.find(), nullptr);
      }));
    }
    for (auto& each : all) {
      each.join();
    }
  });
}

TEST(coroutine_local_in_fiber, swapped_tasks_of_fibers) {
  in_fibers(10, [](int first) { tasks_keep(first); });
}

TEST(coroutine_local_in_fiber, swapped_tasks_of_coroutines_of_fibers) {
  in_fibers(10, [](int first) {
    pirn::coroutine<void()> one([first](auto& yield) {
      number.get() = first;
      tasks_keep(first + 10);
      yield();
      EXPECT_EQ(number.get(), first);
      tasks_keep(first + 20);
      EXPECT_EQ(number.get(), first);
    });
    one.resume();
    pirn::this_fiber::yield();
    one.resume();
    EXPECT_TRUE(one.done());
  });
}

TEST(coroutine_local_in_fiber, copied_coroutines_of_fibers) {
  in_fibers(10, [](int first) {
    pirn::copy_stack shared(std::size_t{1} << 17);
    std::vector<pirn::copied_coroutine<void()>> all;
    for (int i = 0; i < 3; ++i) {
      all.emplace_back(shared, [mine = first + i](auto& yield) { keeps(mine, yield); });
    }
    for (int turn = 0; turn < 4; ++turn) {
      for (auto& each : all) {
        each.resume();
      }
    }
    for (auto& each : all) {
      EXPECT_TRUE(each.done());
    }
  });
}

}  // namespace
