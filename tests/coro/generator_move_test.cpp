// Generators that are moved and assigned.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "coro/generator_support.hpp"
#include "pirn/coro/generator.hpp"

namespace {

using generator_test::counted;
using generator_test::taken;
using pirn::generator;

TEST(generator_move, may_be_moved_between_elements) {
  int alive = 0;
  generator<int> a = [&](auto& yield) {
    const counted local(alive);
    for (int i = 1;; ++i) {
      yield(i);
    }
  };
  EXPECT_EQ(*a.begin(), 1);
  generator<int> b = std::move(a);
  EXPECT_EQ(*b.begin(), 2);
  b = generator<int>([](auto& yield) { yield(9); });
  EXPECT_EQ(alive, 0) << "assignment ends what was there";
  EXPECT_EQ(taken(b), std::vector{9});
}

TEST(generator_move, takes_over_one_that_its_own_body_holds) {
  auto inner = std::make_unique<generator<int>>([](auto& yield) {
    yield(2);
    yield(3);
  });
  generator<int>& next = *inner;
  generator<int> head = [held = std::move(inner)](auto& yield) mutable {
    const auto owned = std::move(held);
    yield(1);
  };
  EXPECT_EQ(*head.begin(), 1);
  head = std::move(next);
  EXPECT_EQ(taken(head), (std::vector{2, 3}));
}

TEST(generator_move, may_be_moved_while_iterated) {
  generator<int> a = [](auto& yield) {
    for (int i = 1; i <= 4; ++i) {
      yield(i);
    }
  };
  generator<int> b = [](auto&) {};
  {
    auto it = a.begin();
    b = std::move(a);
    ++it;
    auto moved = std::move(it);
    EXPECT_EQ(*moved, 2);
  }
  EXPECT_EQ(taken(b), (std::vector{3, 4}));
}

}  // namespace
