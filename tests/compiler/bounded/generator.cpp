// Generators with frame<>, whose stacks the plugin measures.
#include "pirn/coro/generator.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <vector>

namespace {

using pirn::frame;
using pirn::generator;

struct counter {
  int* alive;
  explicit counter(int& of) : alive(&of) { ++*alive; }
  counter(const counter&) = delete;
  ~counter() { --*alive; }
};

template <int Disks>
void hanoi(generator<int>::yield& yield) {
  if constexpr (Disks != 0) {
    hanoi<Disks - 1>(yield);
    yield(Disks);
    hanoi<Disks - 1>(yield);
  }
}

TEST(generator_frame, gives_all_elements) {
  int sum = 0;
  generator<int, frame<>> numbers = [](auto& yield) {
    for (int i = 1; i <= 100; ++i) {
      yield(i);
    }
  };
  for (const int n : numbers) {
    sum += n;
  }
  EXPECT_EQ(sum, 5050);
}

TEST(generator_frame, holds_a_body_of_a_known_depth) {
  std::vector<int> moves;
  generator<int, frame<>> all = [](auto& yield) { hanoi<5>(yield); };
  for (const int disk : all) {
    moves.push_back(disk);
  }
  EXPECT_EQ(moves.size(), 31u);
  EXPECT_EQ(moves[15], 5);
}

TEST(generator_frame, is_unwound_when_it_is_left_early) {
  int alive = 0;
  for (int round = 0; round < 3; ++round) {
    generator<int, frame<>> numbers = [&alive](auto& yield) {
      const counter here(alive);
      for (int i = 0;; ++i) {
        yield(i);
      }
    };
    for (const int n : numbers) {
      EXPECT_EQ(alive, 1);
      if (n == 3) {
        break;
      }
    }
  }
  EXPECT_EQ(alive, 0);
}

TEST(generator_frame, throws_what_its_body_throws) {
  generator<int, frame<>> numbers = [](auto& yield) {
    yield(1);
    throw std::runtime_error("two");
  };
  int sum = 0;
  EXPECT_THROW(
      {
        for (const int n : numbers) {
          sum += n;
        }
      },
      std::runtime_error);
  EXPECT_EQ(sum, 1);
}

TEST(generator_frame, nests_in_the_body_of_another) {
  generator<int, frame<>> outer = [](auto& yield) {
    for (int i = 1; i <= 3; ++i) {
      generator<int, frame<>> inner = [i](auto& give) {
        for (int k = 0; k < i; ++k) {
          give(i);
        }
      };
      for (const int n : inner) {
        yield(n);
      }
    }
  };
  int sum = 0;
  for (const int n : outer) {
    sum += n;
  }
  EXPECT_EQ(sum, 14);
}

TEST(generator_frame, interleaves_with_others) {
  generator<int, frame<>> a = [](auto& yield) { hanoi<4>(yield); };
  generator<int, frame<>> b = [](auto& yield) { hanoi<4>(yield); };
  auto at_a = a.begin();
  auto at_b = b.begin();
  int steps = 0;
  for (; at_a != a.end() && at_b != b.end(); ++at_a, ++at_b) {
    EXPECT_EQ(*at_a, *at_b);
    ++steps;
  }
  EXPECT_EQ(steps, 15);
}

TEST(generator_frame, is_a_temporary_of_a_loop) {
  int sum = 0;
  for (const int n : generator<int, frame<>>([](auto& yield) { yield(1), yield(2); })) {
    sum += n;
  }
  EXPECT_EQ(sum, 3);
}

TEST(generator_frame, ends_the_program_if_one_statement_makes_two) {
  const auto two = [] {
    std::optional<generator<int, frame<>>> kept[2];
    for (auto& each : kept) {
      each.emplace([](auto& yield) { yield(1); });
      static_cast<void>(each->begin());
      asm volatile("" : : "r"(&each) : "memory");
    }
  };
  EXPECT_DEATH(two(), "made where the last one that the same statement has made still lives");
}

/// Writes over all that it may use.
[[gnu::noinline]] int deep(int seed) {
  volatile int room[200];
  for (int i = 0; i < 200; ++i) {
    room[i] = seed;
  }
  return room[seed];
}

TEST(generator_frame, has_room_for_what_its_body_calls) {
  int alive = 0;
  {
    generator<int, frame<>> numbers = [&alive](auto& yield) {
      const counter here(alive);
      yield(deep(1));
      yield(deep(2));
    };
    auto at = numbers.begin();
    EXPECT_EQ(*at, 1);
    ++at;
    EXPECT_EQ(*at, 2);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
