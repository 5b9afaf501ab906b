// Variables of which each coroutine has a separate instance, as far as coroutine_test.cpp and coroutine_pool_test.cpp
// do not cover them.
#include "pirn/coro/coroutine_local.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
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

TEST(coroutine_local_test, the_newest_variable_ends_first) {
  struct noted {
    int number;
    std::vector<int>* log = nullptr;
    explicit noted(int of) : number(of) {}
    noted(const noted&) = default;
    ~noted() {
      if (log != nullptr) {
        log->push_back(number);
      }
    }
  };
  const pirn::coroutine_local<noted> first(noted(1)), second(noted(2)), third(noted(3));
  std::vector<int> log;
  coroutine<void()> one([&](auto& yield) {
    second.get(yield).log = &log;
    first.get(yield).log = &log;
    third.get(yield).log = &log;
  });
  one.resume();
  EXPECT_EQ(log, (std::vector{3, 1, 2}));
}

TEST(coroutine_local_test, a_hundred_variables_are_found_in_each_of_two_coroutines) {
  constexpr int many = 100;
  std::vector<std::unique_ptr<pirn::coroutine_local<int>>> variables;
  for (int i = 0; i < many; ++i) {
    variables.push_back(std::make_unique<pirn::coroutine_local<int>>(i));
  }
  const auto body = [&variables](auto& yield) {
    for (int i = many - 1; i >= 0; --i) {
      EXPECT_EQ(variables[static_cast<std::size_t>(i)]->find(yield), nullptr);
      EXPECT_EQ(variables[static_cast<std::size_t>(i)]->get(yield)++, i);
    }
    yield();
    for (int i = 0; i < many; ++i) {
      ASSERT_NE(variables[static_cast<std::size_t>(i)]->find(yield), nullptr);
      EXPECT_EQ(variables[static_cast<std::size_t>(i)]->get(yield), i + 1);
    }
  };
  coroutine<void()> one(body);
  coroutine<void()> two(body);
  one.resume();
  two.resume();
  one.resume();
  two.resume();
  EXPECT_TRUE(one.done());
  EXPECT_TRUE(two.done());
}

TEST(coroutine_local_test, variables_whose_places_are_alike_are_told_apart) {
  constexpr std::size_t many = 65;
  std::vector<std::unique_ptr<pirn::coroutine_local<int>>> variables;
  for (std::size_t i = 0; i < many; ++i) {
    variables.push_back(std::make_unique<pirn::coroutine_local<int>>(0));
  }
  coroutine<void()> numbers_them([&](auto& yield) {
    for (const auto& each : variables) {
      static_cast<void>(each->get(yield));
    }
  });
  numbers_them.resume();
  coroutine<void()> one([&](auto& yield) {
    for (std::size_t i = 0; i < many; i += 32) {
      EXPECT_EQ(variables[i]->find(yield), nullptr);
      EXPECT_EQ(variables[i]->get(yield)++, 0);
    }
    for (std::size_t i = 0; i < many; i += 32) {
      EXPECT_EQ(variables[i]->get(yield), 1);
    }
  });
  one.resume();
  EXPECT_TRUE(one.done());
}

TEST(coroutine_local_test, a_destructor_makes_variables_that_end_too) {
  static const pirn::coroutine_local<std::shared_ptr<int>> made_late;
  struct last {
    pirn::detail::coroutine_locals* in = nullptr;
    std::shared_ptr<int> held;
    last() = default;
    last(const last&) = default;
    ~last() {
      if (in != nullptr) {
        made_late.get(*in) = held;
      }
    }
  };
  const pirn::coroutine_local<last> variable;
  const auto owned = std::make_shared<int>(1);
  coroutine<void()> one([&](auto& yield) {
    variable.get(yield).held = owned;
    variable.get(yield).in = &yield;
  });
  one.resume();
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(coroutine_local_test, a_destructor_does_not_find_what_is_already_destroyed) {
  static const pirn::coroutine_local<int> newer;
  struct older {
    pirn::detail::coroutine_locals* in = nullptr;
    bool* found = nullptr;
    older() = default;
    older(const older&) = default;
    ~older() {
      if (in != nullptr) {
        *found = newer.find(*in) != nullptr;
      }
    }
  };
  const pirn::coroutine_local<older> variable;
  bool found = true;
  coroutine<void()> one([&](auto& yield) {
    variable.get(yield).found = &found;
    variable.get(yield).in = &yield;
    newer.get(yield) = 1;
  });
  one.resume();
  EXPECT_FALSE(found);
}

TEST(coroutine_local_test, a_variable_may_end_before_its_values) {
  auto variable = std::make_unique<pirn::coroutine_local<std::shared_ptr<int>>>();
  const auto owned = std::make_shared<int>(1);
  coroutine<void()> one([&](auto& yield) {
    variable->get(yield) = owned;
    yield();
    // Another one at the same place finds no value of the first.
    std::destroy_at(variable.get());
    new (variable.get()) pirn::coroutine_local<std::shared_ptr<int>>();
    EXPECT_EQ(variable->find(yield), nullptr);
    EXPECT_EQ(owned.use_count(), 2);
  });
  one.resume();
  one.resume();
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
