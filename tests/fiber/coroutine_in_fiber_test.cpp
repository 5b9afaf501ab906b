// Fibers and coroutines together: neither layer knows of the other.
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/fiber/runtime.hpp"

namespace {

PIRN_NOINLINE int yield_at_depth(int depth) {
  if (depth == 0) {
    pirn::this_fiber::yield();
    return 0;
  }
  volatile int below = yield_at_depth(depth - 1);
  return below + 1;
}

TEST(coroutine_in_fiber, a_fiber_suspends_inside_a_coroutine) {
  pirn::runtime runtime({.workers = 2});
  std::vector<pirn::fiber> fibers;
  for (int i = 0; i < 4; ++i) {
    fibers.push_back(runtime.spawn([] {
      for (int round = 0; round < 100; ++round) {
        pirn::coroutine<int()> one([](auto& yield) {
          const int first = yield_at_depth(5);
          yield(first);
          return yield_at_depth(7);
        });
        EXPECT_EQ(one.resume(), 5);
        pirn::this_fiber::yield();
        EXPECT_EQ(one.resume(), 7);
      }
    }));
  }
  for (auto& each : fibers) {
    each.join();
  }
}

TEST(coroutine_in_fiber, a_fiber_suspends_inside_a_generator_and_in_its_catch_blocks) {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    std::vector<pirn::fiber> fibers;
    for (int i = 0; i < 3; ++i) {
      fibers.push_back(pirn::spawn([] {
        pirn::generator<int> numbers = [](auto& yield) {
          for (int n = 0; n < 50; ++n) {
            try {
              throw std::runtime_error("once");
            } catch (const std::runtime_error&) {
              pirn::this_fiber::yield();
            }
            yield(n);
          }
        };
        int sum = 0;
        for (const int n : numbers) {
          pirn::this_fiber::yield();
          sum += n;
        }
        EXPECT_EQ(sum, 50 * 49 / 2);
      }));
    }
    for (auto& each : fibers) {
      each.join();
    }
  });
}

}  // namespace
