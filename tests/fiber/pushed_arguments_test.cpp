// Calls with arguments on the stack, behind the switches of fibers and in both halves of a fork2: the arguments arrive,
// a handler is found, and destructors run. The unwind tables of a function that suspends must survive the switch that
// is inlined into it; tests/coro/conformance_pushed.cpp tests that for coroutines. Also the frame of a body over a
// yield with a value bound, or with a delegation: the yield has cold code for both.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "context/pushed.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/fiber/context_value.hpp"
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

/// Forks, and then throws the sum of both halves.
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

const pirn::context_value<long> bound;

PUSHED_KEEP long value_bound() { return bound.get() != nullptr ? *bound.get() : -1; }

/// Needs its capture after each yield, but not for its end.
pirn::generator<long> twice(const long* first) {
  return [first](auto& yield) {
    const pirn::context_value<long>::binding mine(bound, *first);
    for (int i = 0; i < 2; ++i) {
      yield(pushed::listed(3, *first, value_bound(), long{i}));
    }
  };
}

/// Needs many variables.
pirn::generator<long> many_variables(const long* first) {
  return [first](auto& yield) {
    const pirn::context_value<long>::binding mine(bound, *first);
    long a = *first, b = a * 3, c = b * 5, d = c * 7, e = d * 9, f = e * 11, g = f * 13;
    for (int i = 0; i < 9; ++i) {
      yield(pushed::listed(9, a, b, c, d, e, f, g, value_bound(), long{i}));
      a += g % 17, b ^= a, c += b, d ^= c + *first, e += d, f ^= e, g += f;
    }
  };
}

/// Catches exceptions that are thrown between yields.
pirn::generator<long> with_handlers(const long* first) {
  return [first](auto& yield) {
    int ended = 0;
    const pushed::ending last(ended);
    const pirn::context_value<long>::binding mine(bound, *first);
    for (long i = 0; i < 4; ++i) {
      try {
        yield(value_bound() * 10 + i);
        pushed::fail_plainly(*first, i, 2, 3, 4, 5, 6, 7, 8, 9);
      } catch (long thrown) {
        yield(thrown + value_bound());
      }
    }
  };
}

/// Passes a yield object and a list to the functions that a body calls.
template <class Yield>
struct visitor {
  Yield& yield;
  std::vector<long>& seen;
  PUSHED_KEEP void visit(const long* first, long depth) {
    const pirn::context_value<long>::binding mine(bound, *first + depth);
    yield(value_bound());
    seen.push_back(depth);
    if (depth < 3) {
      visit(first, depth + 1);
      yield(-value_bound());
      seen.push_back(-depth);
    }
  }
};

/// Yields in functions that it calls, with values in the frames of those functions.
pirn::generator<long> in_functions(const long* first) {
  return [first](auto& yield) {
    std::vector<long> seen;
    visitor<std::remove_reference_t<decltype(yield)>>{yield, seen}.visit(first, 0);
    for (const long each : seen) {
      yield(each);
    }
  };
}

/// Returns the values of one generator that runs alone.
std::vector<long> alone(pirn::generator<long> (*body)(const long*), const long& first) {
  std::vector<long> all;
  for (const long each : body(&first)) {
    all.push_back(each);
  }
  return all;
}

/// Runs three generators in turns, and ends the last one early.
void take_turns(pirn::generator<long> (*body)(const long*)) {
  static constexpr long firsts[] = {100, 200, 300};
  std::vector<std::vector<long>> expected;
  for (const long& first : firsts) {
    expected.push_back(alone(body, first));
  }
  pirn::generator<long> a = body(&firsts[0]);
  pirn::generator<long> b = body(&firsts[1]);
  pirn::generator<long> c = body(&firsts[2]);
  auto at_a = a.begin();
  auto at_b = b.begin();
  auto at_c = c.begin();
  EXPECT_EQ(*at_c, expected[2][0]);
  for (std::size_t i = 0; i < expected[0].size(); ++i, ++at_a, ++at_b) {
    EXPECT_EQ(value_bound(), -1);
    EXPECT_EQ(*at_a, expected[0][i]);
    EXPECT_EQ(*at_b, expected[1][i]);
  }
  EXPECT_TRUE(at_a == a.end());
  EXPECT_TRUE(at_b == b.end());
}

TEST(generators_with_a_value_bound, keep_their_frames_over_a_yield) {
  const long first = 100;
  EXPECT_EQ(alone(twice, first),
            (std::vector<long>{pushed::listed(3, 100L, 100L, 0L), pushed::listed(3, 100L, 100L, 1L)}));
  EXPECT_EQ(alone(with_handlers, first).size(), 8U);
  EXPECT_EQ(alone(many_variables, first).size(), 9U);
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    take_turns(twice);
    take_turns(many_variables);
    take_turns(with_handlers);
    take_turns(in_functions);
  });
}

template <class Yield>
PUSHED_KEEP void give_and_note(visitor<Yield>& to, std::vector<long>& seen) {
  to.yield(1);
  seen.push_back(1);
  to.yield(2);
  seen.push_back(2);
}

TEST(generators_that_are_delegated_to_while_suspended, keep_their_frames_over_a_yield) {
  std::vector<long> seen;
  pirn::generator<long> inner = [&](auto& yield) {
    visitor<std::remove_reference_t<decltype(yield)>> to{yield, seen};
    give_and_note(to, to.seen);
  };
  pirn::generator<long> outer = [&](auto& yield) {
    for (const long each : inner) {
      yield(each * 10);
      break;
    }
    yield(pirn::elements_of(inner));
  };
  std::vector<long> all;
  for (const long each : outer) {
    all.push_back(each);
  }
  EXPECT_EQ(all, (std::vector<long>{10, 2}));
  EXPECT_EQ(seen, (std::vector<long>{1, 2}));
}

PUSHED_KEEP void touch(void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

// In an ordinary function, because a template is compiled differently.
TEST(generators_with_frames_of_unknown_size, yield_beside_an_over_aligned_variable) {
  volatile long count = 40;
  pirn::generator<long> g = [&count](auto& yield) {
    alignas(64) long over[8] = {};
    auto* const given = static_cast<long*>(__builtin_alloca(static_cast<std::size_t>(count) * sizeof(long)));
    for (long i = 0; i < 5; ++i) {
      touch(over);
      given[i] = over[i] + i;
      touch(given);
      yield(given[i] + static_cast<long>(reinterpret_cast<std::uintptr_t>(over) % 64));
    }
  };
  long sum = 0;
  for (const long each : g) {
    sum += each;
  }
  EXPECT_EQ(sum, 10);
}

}  // namespace
