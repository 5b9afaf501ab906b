// Generators among ranges: the concepts, the adaptors, and the driver that inlines.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <ranges>
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

static_assert(std::ranges::input_range<generator<int>> && std::ranges::view<generator<int>>);
static_assert(std::ranges::input_range<generator<const std::string&>>);
static_assert(std::ranges::input_range<generator<std::unique_ptr<int>>>);
static_assert(!std::ranges::forward_range<generator<int>>);
static_assert(!std::ranges::borrowed_range<generator<int>>);
static_assert(std::input_iterator<generator<int>::iterator> && !std::copyable<generator<int>::iterator>);
static_assert(std::movable<generator<int>> && !std::copyable<generator<int>>);
static_assert(std::ranges::input_range<generator<int, frame<1024>>> && !std::movable<generator<int, frame<1024>>>);
static_assert(std::same_as<std::ranges::range_reference_t<generator<int>>, int>);
static_assert(std::same_as<std::ranges::range_reference_t<generator<std::string>>, std::string&&>);
static_assert(std::same_as<std::ranges::range_reference_t<generator<int&>>, int&>);
static_assert(std::same_as<std::ranges::range_value_t<generator<const std::string&>>, std::string>);
static_assert(!std::convertible_to<int, generator<int>> && !std::convertible_to<generator<long>, generator<int>>);

generator<long> naturals() {
  return [](auto& yield) {
    for (long i = 0;; ++i) {
      yield(i);
    }
  };
}

TEST(generator_ranges, composes_with_adaptors) {
  auto squares_of_odd = naturals() | std::views::filter([](long i) { return i % 2 == 1; }) |
                        std::views::transform([](long i) { return i * i; }) | std::views::take(4);
  EXPECT_EQ(taken(squares_of_odd), (std::vector<long>{1, 9, 25, 49}));
}

TEST(generator_ranges, composes_by_reference) {
  auto numbers = naturals();
  EXPECT_EQ(taken(std::ranges::ref_view(numbers) | std::views::take_while([](long i) { return i < 3; })),
            (std::vector<long>{0, 1, 2}));
  EXPECT_EQ(*numbers.begin(), 4) << "3 was looked at";
}

TEST(generator_ranges, composes_in_a_frame) {
  generator<int, frame<32768>> numbers = [](auto& yield) {
    for (int i = 0; i < 10; ++i) {
      yield(i);
    }
  };
  EXPECT_EQ(taken(numbers | std::views::drop(7)), (std::vector{7, 8, 9}));
}

TEST(generator_ranges, drops_and_joins) {
  generator<std::vector<int>> rows = [](auto& yield) {
    for (int i = 1; i <= 3; ++i) {
      yield(std::vector<int>(static_cast<std::size_t>(i), i));
    }
  };
  EXPECT_EQ(taken(std::move(rows) | std::views::join | std::views::drop(1)), (std::vector{2, 2, 3, 3, 3}));
}

TEST(generator_ranges, serves_algorithms) {
  auto numbers = naturals();
  const auto found = std::ranges::find_if(numbers, [](long i) { return i * i > 50; });
  EXPECT_EQ(*found, 8);
  generator<int> few = [](auto& yield) {
    for (const int i : {3, 1, 2}) {
      yield(i);
    }
  };
  EXPECT_EQ(std::ranges::max(few), 3);
  generator<std::string> words = [](auto& yield) {
    yield("a");
    yield(std::string("b"));
  };
  std::vector<std::string> kept;
  std::ranges::move(words, std::back_inserter(kept));
  EXPECT_EQ(kept, (std::vector<std::string>{"a", "b"}));
}

TEST(generator_ranges, is_a_stage_of_a_pipeline) {
  const auto numbered = [](generator<std::string> lines) -> generator<std::string> {
    return [lines = std::move(lines)](auto& yield) mutable {
      int number = 0;
      for (std::string&& line : lines) {
        yield(std::to_string(++number) + ": " + line);
      }
    };
  };
  const auto upper = [](generator<std::string> lines) -> generator<std::string> {
    return [lines = std::move(lines)](auto& yield) mutable {
      for (std::string&& line : lines) {
        std::ranges::transform(line, line.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
        yield(std::move(line));
      }
    };
  };
  auto all = numbered(upper([](auto& yield) {
    yield("one");
    yield("two");
  }));
  EXPECT_EQ(taken(all), (std::vector<std::string>{"1: ONE", "2: TWO"}));
}

int twice(int n) { return 2 * n; }

TEST(generator_ranges, of_references_to_functions) {
  generator<int (&)(int)> functions = [](auto& yield) { yield(twice); };
  static_assert(std::ranges::input_range<decltype(functions)>);
  int calls = 0;
  for (auto& function : functions) {
    EXPECT_EQ(function(4), 8);
    ++calls;
  }
  pirn::for_each<int (&)(int)>([](auto& yield) { yield(twice); }, [&](auto& function) { calls += function(1); });
  EXPECT_EQ(calls, 3);
}

// ---- for_each -------------------------------------------------------------------------------------------------------

const auto one_to_ten = [](auto& yield) {
  for (int i = 1; i <= 10; ++i) {
    yield(i);
  }
};

TEST(generator_for_each, calls_the_consumer_with_each_element) {
  int sum = 0;
  EXPECT_TRUE(pirn::for_each<int>(one_to_ten, [&](int i) { sum += i; }));
  EXPECT_EQ(sum, 55);
}

TEST(generator_for_each, stops_when_the_consumer_says_so) {
  int alive = 0;
  std::vector<int> seen;
  const bool all = pirn::for_each<int>(
      [&](auto& yield) {
        const counted local(alive);
        for (int i = 1;; ++i) {
          yield(i);
        }
      },
      [&](int i) {
        seen.push_back(i);
        return i < 3;
      });
  EXPECT_FALSE(all);
  EXPECT_EQ(seen, (std::vector{1, 2, 3}));
  EXPECT_EQ(alive, 0);
}

TEST(generator_for_each, stops_a_body_that_swallows) {
  int calls = 0, swallowed = 0;
  const bool all = pirn::for_each<int>(
      [&](auto& yield) {
        for (int i = 0; i < 5; ++i) {
          try {
            yield(i);
          } catch (...) {
            ++swallowed;
          }
        }
      },
      [&](int) {
        ++calls;
        return false;
      });
  EXPECT_FALSE(all);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(swallowed, 5);
}

TEST(generator_for_each, does_not_show_the_body_what_the_consumer_throws) {
  bool caught = false;
  const auto run = [&] {
    pirn::for_each<int>(
        [&](auto& yield) {
          try {
            yield(1);
          } catch (const std::exception&) {
            caught = true;
          }
        },
        [](int) { throw std::runtime_error("consumer"); });
  };
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_FALSE(caught);
}

// As with the other drivers, which also drop the exception by which a body answers its unwind.
TEST(generator_for_each, is_ended_by_its_consumer_whatever_the_body_answers) {
  const auto body = [](auto& yield) {
    try {
      yield(1);
    } catch (...) {
      throw std::runtime_error("body");
    }
  };
  EXPECT_FALSE(pirn::for_each<int>(body, [](int) { return false; }));
  EXPECT_FALSE(pirn::for_each<int>(body, [](int) noexcept { return false; }));
  EXPECT_THROW(pirn::for_each<int>(body, [](int) { throw std::logic_error("consumer"); }), std::logic_error);
}

TEST(generator_for_each, stops_through_another_one) {
  int went_on = 0;
  const bool all = pirn::for_each<int>(
      [&](auto& outer) {
        pirn::for_each<int>(
            [&](auto& inner) {
              inner(1);
              outer(2);
            },
            [](int) {});
        ++went_on;
      },
      [](int) { return false; });
  EXPECT_FALSE(all);
  EXPECT_EQ(went_on, 0);
}

TEST(generator_for_each, lets_an_unwind_from_outside_pass) {
  int alive = 0, went_on = 0;
  {
    generator<int> outside = [&](auto& yield) {
      pirn::for_each<int>(
          [&](auto& give) {
            const counted local(alive);
            try {
              give(1);
            } catch (...) {
              yield(2);
            }
          },
          [](int) { return false; });
      ++went_on;
    };
    EXPECT_EQ(*outside.begin(), 2);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(went_on, 0);
}

// A lambda returns the value of its last expression, which may have no meaning.
TEST(generator_for_each, is_stopped_by_a_bool_only) {
  int sum = 0, calls = 0;
  const auto from_zero = [](auto& yield) {
    for (int i = 0; i < 5; ++i) {
      yield(i);
    }
  };
  const auto add = [&](int i) {
    ++calls;
    return sum += i;
  };
  EXPECT_TRUE(pirn::for_each<int>(from_zero, add));
  EXPECT_EQ(calls, 5);
  EXPECT_TRUE(pirn::for_each<int>([&](generator<int>::yield& yield) { from_zero(yield); }, add));
  EXPECT_EQ(calls, 10);
  EXPECT_TRUE(pirn::for_each<int>(from_zero, [](int) -> const char* { return nullptr; }));
}

TEST(generator_for_each, throws_what_the_body_throws) {
  EXPECT_THROW(pirn::for_each<int>([](auto&) { throw std::logic_error("body"); }, [](int) {}), std::logic_error);
}

TEST(generator_for_each, hands_over_references_and_what_only_moves) {
  int value = 1;
  pirn::for_each<int&>([&](auto& yield) { yield(value); }, [](int& i) { i = 7; });
  EXPECT_EQ(value, 7);
  std::unique_ptr<int> kept;
  pirn::for_each<std::unique_ptr<int>>([](auto& yield) { yield(std::make_unique<int>(3)); },
                                       [&](std::unique_ptr<int>&& p) { kept = std::move(p); });
  EXPECT_EQ(*kept, 3);
  std::string text = "keep";
  pirn::for_each<std::string>([&](auto& yield) { yield(text); },
                              [](std::string&& s) { EXPECT_EQ(std::string(std::move(s)), "keep"); });
  EXPECT_EQ(text, "keep");
}

TEST(generator_for_each, delegates) {
  std::vector<int> seen;
  pirn::for_each<int>(
      [](auto& yield) {
        yield(elements_of(std::vector{1, 2}));
        yield(elements_of(generator<int>([](auto& give) { give(3); })));
      },
      [&](int i) { seen.push_back(i); });
  EXPECT_EQ(seen, (std::vector{1, 2, 3}));
}

TEST(generator_for_each, runs_a_body_of_one_yield_type_too) {
  int sum = 0;
  const auto body = [](generator<int>::yield& yield) {
    for (int i = 1; i <= 3; ++i) {
      yield(i);
    }
  };
  EXPECT_TRUE(pirn::for_each<int>(body, [&](int i) { sum += i; }));
  EXPECT_EQ(sum, 6);
  EXPECT_FALSE(pirn::for_each<int>(body, [](int i) { return i < 2; }));
}

}  // namespace
