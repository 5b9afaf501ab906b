// Variables of which each coroutine has a separate instance, as far as coroutine_test.cpp and coroutine_pool_test.cpp
// do not cover them.
#include "pirn/coro/coroutine_local.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "pirn/coro/coroutine.hpp"

namespace {

using pirn::coroutine;

TEST(coroutine_local_test, variables_end_while_older_ones_are_there) {
  static const pirn::coroutine_local<std::shared_ptr<std::vector<int>>> log;
  struct noted {
    int number;
    pirn::detail::coroutine_locals* in = nullptr;
    explicit noted(int of) : number(of) {}
    noted(const noted&) = default;
    ~noted() {
      if (in != nullptr) {
        log.get(*in)->push_back(number);
      }
    }
  };
  const pirn::coroutine_local<noted> first(noted(1)), second(noted(2)), third(noted(3));
  const auto seen = std::make_shared<std::vector<int>>();
  coroutine<void()> one([&](auto& yield) {
    log.get(yield) = seen;
    first.get(yield).in = second.get(yield).in = third.get(yield).in = &yield;
  });
  one.resume();
  EXPECT_TRUE(one.done());
  std::vector<int> sorted = *seen;
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, (std::vector{1, 2, 3}));
}

}  // namespace
