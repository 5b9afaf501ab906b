// Generators that delegate to generators which have not begun: these run on the delegator's stack as long as it has
// room for the promised size.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "coro/generator_support.hpp"
#include "pirn/coro/generator.hpp"

namespace {

using generator_test::counted;
using generator_test::taken;
using pirn::elements_of;
using pirn::frame;
using pirn::generator;

/// Appends its level to a list when it is destroyed.
class noted {
 public:
  noted(std::vector<int>& ended, int level) : ended_(ended), level_(level) {}
  ~noted() { ended_.push_back(level_); }
  noted(const noted&) = delete;
  noted& operator=(const noted&) = delete;

 private:
  std::vector<int>& ended_;
  int level_;
};

#if defined(PIRN_TSAN) || defined(PIRN_ASAN) || !defined(__OPTIMIZE__)
constexpr int deep = 5'000;  // frames are large
#else
constexpr int deep = 200'000;
#endif

/// Counts from `level` down to 0, with a separate generator for each level, and up again.
generator<int> there_and_back(int level) {
  return [level](auto& yield) {
    yield(level);
    if (level != 0) {
      yield(elements_of(there_and_back(level - 1)));
      yield(level);
    }
  };
}

TEST(generator_recursion, holds_a_stack_for_many_levels) {
  const std::size_t before = pirn::default_stack_pool().statistics().in_use;
  std::size_t most = 0;
  int next = deep;
  int step = -1;
  long turns = 0;
  for (const int level : there_and_back(deep)) {
    ASSERT_EQ(level, next);
    if (level == 0) {
      most = pirn::default_stack_pool().statistics().in_use;
      step = 1;
    }
    next += step;
    ++turns;
  }
  EXPECT_EQ(turns, 2L * deep + 1);
  EXPECT_LE(most - before, deep / 50U) << "each takes a stack of its own";
  EXPECT_EQ(pirn::default_stack_pool().statistics().in_use, before);
}

TEST(generator_recursion, ends_in_the_midst_from_the_innermost_outwards) {
  constexpr int levels = 3000;
  std::vector<int> ended;
  auto make = [&](auto& self, int level) -> generator<int> {
    return [&, level](auto& yield) {
      const noted local(ended, level);
      yield(level);
      if (level != 0) {
        yield(elements_of(self(self, level - 1)));
      }
    };
  };
  {
    auto numbers = make(make, levels);
    for (const int level : numbers) {
      if (level == 0) {
        break;
      }
    }
    EXPECT_TRUE(ended.empty());
  }
  ASSERT_EQ(ended.size(), levels + 1U);
  for (int level = 0; level <= levels; ++level) {
    ASSERT_EQ(ended[static_cast<std::size_t>(level)], level);
  }
}

TEST(generator_recursion, throws_to_the_level_that_catches) {
  constexpr int levels = 2000;
  constexpr int catcher = 1990;
  int alive = 0;
  auto make = [&](auto& self, int level) -> generator<int> {
    return [&, level](auto& yield) {
      const counted local(alive);
      if (level == 0) {
        yield(0);
        throw std::runtime_error("from below");
      }
      std::string caught;
      try {
        yield(elements_of(self(self, level - 1)));
      } catch (const std::runtime_error& failure) {
        if (level != catcher) {
          throw;
        }
        caught = failure.what();
      }
      if (level == catcher) {
        yield(caught == "from below" ? 1 : 2);
      }
      yield(-level);
    };
  };
  std::vector<int> expected{0, 1};
  for (int level = catcher; level <= levels; ++level) {
    expected.push_back(-level);
  }
  EXPECT_EQ(taken(make(make, levels)), expected);
  EXPECT_EQ(alive, 0);
}

TEST(generator_recursion, leaves_each_level_the_stack_that_it_was_promised) {
  auto make = [](auto& self, int level) -> generator<int> {
    return [&self, level](auto& yield) {
      volatile char block[pirn::default_stack_size * 3 / 4];
      block[level] = static_cast<char>(level);  // not a constant, which would let the compiler make it smaller
      yield(level);
      if (level != 0) {
        yield(elements_of(self(self, level - 1)));
      }
      yield(block[level]);
    };
  };
  EXPECT_EQ(taken(make(make, 5)), (std::vector{5, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5}));
}

TEST(generator_recursion, keeps_one_that_its_owner_may_still_ask) {
  generator<int> outer = [](auto& yield) {
    yield(elements_of(generator<int>([](auto& give) {
      generator<int> kept = [](auto& deeper) { deeper(1); };
      give(elements_of(kept));
      give(kept.begin() == kept.end() ? 2 : 3);
      generator<int> given = [](auto& deeper) { deeper(4); };
      give(elements_of(std::move(given)));
    })));
    yield(elements_of(generator<int, frame<32768>>([](auto& give) { give(5); })));
  };
  EXPECT_EQ(taken(outer), (std::vector{1, 2, 4, 5}));
}

struct immovable {
  explicit immovable(int what) : value(what) {}
  immovable(const immovable& other) noexcept(false) : value(other.value) {}
  immovable& operator=(const immovable&) = delete;
  ~immovable() = default;
  template <class Yield>
  void operator()(Yield& yield) const {
    yield(value);
    if (value != 0) {
      yield(elements_of(generator<int>(immovable(value - 1))));
    }
  }
  int value;
};

TEST(generator_recursion, leaves_a_body_where_it_is_that_cannot_be_moved_safely) {
  EXPECT_EQ(taken(generator<int>(immovable(3))), (std::vector{3, 2, 1, 0}));
}

TEST(generator_recursion, moves_what_a_body_has) {
  auto make = [](auto& self, std::unique_ptr<int> left) -> generator<int> {
    return [&self, left = std::move(left)](auto& yield) {
      yield(*left);
      if (*left != 0) {
        yield(elements_of(self(self, std::make_unique<int>(*left - 1))));
        yield(-*left);
      }
    };
  };
  EXPECT_EQ(taken(make(make, std::make_unique<int>(3))), (std::vector{3, 2, 1, 0, -1, -2, -3}));
}

TEST(generator_recursion, refuses_the_yield_object_of_one_that_waits) {
  int refused = 0;
  auto make = [&](auto& self, int level) -> generator<int> {
    return [&, level](auto& yield) {
      auto& above = yield;
      if (level == 0) {
        yield(0);
        return;
      }
      generator<int> inner = [&](auto& give) {
        try {
          above(1);
        } catch (const std::logic_error&) {
          ++refused;
        }
        give(elements_of(self(self, level - 1)));
      };
      yield(elements_of(std::move(inner)));
    };
  };
  EXPECT_EQ(taken(make(make, 4)), (std::vector{0}));
  EXPECT_EQ(refused, 4);
}

TEST(generator_recursion, gives_references_and_large_elements) {
  auto make = [](auto& self, int level) -> generator<std::string> {
    return [&self, level](auto& yield) {
      const std::string text(40, static_cast<char>('a' + level));
      yield(text);
      if (level != 0) {
        yield(elements_of(self(self, level - 1)));
      }
      yield(std::string(text));
    };
  };
  std::string firsts;
  for (std::string&& each : make(make, 5)) {
    ASSERT_EQ(each.size(), 40U);
    firsts += each.front();
  }
  EXPECT_EQ(firsts, "fedcbaabcdef");
}

}  // namespace
