// Calls with arguments on the stack, behind the switches of fibers and in both halves of a fork2: what they are given,
// a handler that is found, and destructors that run. The unwind tables of a function that suspends must survive the
// switch that is inlined into it; what does so in coroutines is in tests/coro/conformance_pushed.cpp.
#include <gtest/gtest.h>

#include "context/pushed.hpp"
#include "pirn/fiber/fork_join.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/fiber/this_fiber.hpp"

namespace {

constexpr long rounds = 20;

long yielding(int& ended) {
  long all = 0;
  pushed::body(rounds, ended, [&all](long total) __attribute__((always_inline)) {
    all = all * 7 % 1000003 + total;
    pirn::this_fiber::yield();
  });
  return all;
}

TEST(pushed_arguments, are_what_they_are_around_yields_of_fibers) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([] {
    pirn::scope all;
    long shown[8] = {};
    int ended[8] = {};
    for (int i = 0; i < 8; ++i) {
      all.spawn([&shown, &ended, i] { shown[i] = yielding(ended[i]); });
    }
    all.join();
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(shown[i], pushed::shown_by(rounds));
      EXPECT_EQ(ended[i], 1);
    }
  });
}

TEST(pushed_arguments, an_exception_leaves_a_fiber_that_has_yielded) {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    int ended = 0;
    pirn::fiber one = pirn::spawn([&ended] {
      const pushed::ending last(ended);
      pirn::this_fiber::yield();
      pushed::fail(1, 2, 3, 4, 5, 6, 7, 8, 9, pushed::structure{{0, 0, 0, 0, 0, 0, 0, 0, 5}});
    });
    EXPECT_THROW(one.join(), long);
    EXPECT_EQ(ended, 1);
  });
}

PUSHED_KEEP long forks(int depth, int& handled);

/// Throws the sum of both halves behind them.
PUSHED_KEEP void throw_sum(int depth, int& handled) {
  int other = 0;
  const auto [left, right] = pirn::fork2(
      [&handled, depth] {
        const long below = forks(depth - 1, handled);
        return below + pushed::sum(0, 0, 0, 0, 0, 0, 0, 0, 0, pushed::structure{{1}});
      },
      [&other, depth] {
        const long below = forks(depth - 1, other);
        return below + pushed::listed(7, 0L, 0L, 0L, 0L, 0L, 0L, 1L);
      });
  handled += other;
  pushed::fail_plainly(left, right, 2, 3, 4, 5, 6, 7, 8, -35);
}

long forks(int depth, int& handled) {
  long sum = 1;
  if (depth != 0) {
    try {
      throw_sum(depth, handled);
    } catch (long thrown) {
      sum = thrown;
      ++handled;
    }
  }
  return sum;
}

TEST(pushed_arguments, and_exceptions_behind_fork2_are_handled) {
  for (const unsigned workers : {1U, 2U}) {
    pirn::runtime runtime({.workers = workers});
    runtime
        .spawn(
            [] {
              int handled = 0;
              EXPECT_EQ(forks(8, handled), 3 * 256 - 2);
              EXPECT_EQ(handled, 255);
            },
            {.migratable = true})
        .join();
  }
}

TEST(pushed_arguments, an_exception_of_the_first_half_arrives) {
  pirn::runtime runtime({.workers = 1});
  const auto fails = [] {
    long caught = 0;
    int ended = 0;
    try {
      const pushed::ending last(ended);
      pirn::fork2([] { pushed::fail(1, 2, 3, 4, 5, 6, 7, 8, 9, pushed::structure{{0, 0, 0, 0, 0, 0, 0, 0, 6}}); },
                  [] {});
    } catch (long code) {
      caught = code;
    }
    EXPECT_EQ(caught, 6);
    EXPECT_EQ(ended, 1);
  };
  runtime.spawn(fails, {.migratable = true}).join();
}

}  // namespace
