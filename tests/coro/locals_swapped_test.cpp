// coroutine_local in swapped tasks: their ends, other threads, and more dispatchers than are found.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "coro/stack_swap_support.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_local.hpp"

namespace {

using swap_support::world;

const pirn::coroutine_local<int> number(5);
const pirn::coroutine_local<std::shared_ptr<int>> held;

[[gnu::noinline]] int& deep_number(int depth) { return depth == 0 ? number.get() : deep_number(depth - 1); }

TEST(swapped_locals, a_discarded_task_leaves_no_values) {
  const auto owned = std::make_shared<int>(1);
  world w;
  auto& first = w.spawn([&] {
    held.get() = owned;
    static_cast<void>(w.swap.block());
    ADD_FAILURE() << "it is discarded";
  });
  w.spawn([&] {
    EXPECT_EQ(owned.use_count(), 2);
    w.swap.discard(first);
    EXPECT_EQ(owned.use_count(), 1);
  });
  EXPECT_EQ(w.swap.run(), pirn::swap_error::none);
  EXPECT_TRUE(first.done());
}

TEST(swapped_locals, a_task_that_is_used_again_begins_without_values) {
  world w;
  auto& one = w.spawn([] { number.get() = 3; });
  EXPECT_EQ(w.swap.run(), pirn::swap_error::none);
  w.start(one, [] { EXPECT_EQ(number.find(), nullptr); });
  EXPECT_EQ(w.swap.run(), pirn::swap_error::none);
}

TEST(swapped_locals, an_aborted_task_ends_its_values) {
  const auto owned = std::make_shared<int>(1);
  world w;
  w.spawn([&] {
    held.get() = owned;
    w.swap.abort();
  });
  EXPECT_EQ(w.swap.run(), pirn::swap_error::none);
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(swapped_locals, other_threads_find_the_values_of_tasks_whose_dispatcher_moves_to_them) {
  pirn::coroutine<void()> around([](auto& yield) {
    number.get() = 1;
    world w;
    for (int i = 0; i < 2; ++i) {
      w.spawn([&, i] {
        number.get() = 20 + i;
        w.yield();
        yield();
        EXPECT_EQ(deep_number(2), 20 + i);
        yield();
        w.yield();
        EXPECT_EQ(deep_number(1), 20 + i);
      });
    }
    EXPECT_EQ(w.swap.run(), pirn::swap_error::none);
    EXPECT_EQ(number.get(), 1);
  });
  while (!around.done()) {
    std::thread([&around] { around.resume(); }).join();
    if (!around.done()) {
      around.resume();
    }
  }
}

TEST(swapped_locals, outside_of_tasks_there_are_no_values) {
  world w;
  w.spawn([] { number.get() = 3; });
  EXPECT_EQ(w.swap.run(), pirn::swap_error::none);
  EXPECT_EQ(number.find(), nullptr);
  EXPECT_THROW(static_cast<void>(number.get()), std::logic_error);
}

TEST(swapped_locals, a_dispatcher_beyond_those_that_there_is_room_for_has_none) {
  const std::function<void(int)> nested = [&](int depth) {
    world w;
    w.spawn([&] {
      if (depth <= 60) {
        number.get() = depth;
      }
      if (depth < 70) {
        nested(depth + 1);
      }
      if (depth <= 60) {
        EXPECT_EQ(number.get(), depth);
      } else if (depth == 70) {
        EXPECT_EQ(number.find(), nullptr);
        EXPECT_THROW(static_cast<void>(number.get()), std::logic_error);
      }
    });
    EXPECT_EQ(w.swap.run(), pirn::swap_error::none);
  };
  nested(1);
  nested(1);
}

/// From far below the caller, where bodies that wait have had their frames.
[[gnu::noinline]] const int* found_below(const pirn::coroutine_local<int>& variable, int depth) {
  char room[1024];
  const int* const found = depth == 0 ? variable.find() : found_below(variable, depth - 1);
  asm volatile("" : : "r"(&room[0]) : "memory");  // not a loop
  return found;
}

TEST(swapped_locals, the_caller_of_run_does_not_look_at_a_dispatcher_that_waits_with_a_task) {
  const pirn::coroutine_local<int> variable(1);
  swap_support::world outer;
  auto& waits = outer.spawn([&] {
    swap_support::world inner;  // in frames that are copied elsewhere
    inner.spawn([&] {
      variable.get() = 2;
      EXPECT_EQ(outer.swap.block(), pirn::swap_error::none);
      EXPECT_EQ(variable.get(), 2);
    });
    EXPECT_EQ(inner.swap.run(), pirn::swap_error::none);
  });
  EXPECT_EQ(outer.swap.run(), pirn::swap_error::none);
  for (int depth = 0; depth < 20; ++depth) {
    EXPECT_EQ(found_below(variable, depth), nullptr);
  }
  outer.policy.ready(waits);
  EXPECT_EQ(outer.swap.run(), pirn::swap_error::none);
  EXPECT_TRUE(waits.done());
}

}  // namespace
