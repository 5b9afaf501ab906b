// The errors that generators report for misuse, in every build.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "coro/generator_support.hpp"
#include "pirn/context/continuation.hpp"
#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/coro/generator.hpp"

namespace {

using generator_test::counted;
using pirn::generator;

template <class F>
std::string message_of(F&& run) {
  try {
    run();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

const auto forever = [](auto& yield) {
  for (int i = 1;; ++i) {
    yield(i);
  }
};

TEST(generator_misuse, moved_from) {
  generator<int> a = forever;
  const generator<int> b = std::move(a);
  // NOLINTNEXTLINE(bugprone-use-after-move): the mistake
  EXPECT_EQ(message_of([&] { static_cast<void>(a.begin()); }), "pirn: generator: it has been moved from");
}

TEST(generator_misuse, delegated_to_after_a_move) {
  generator<int> a = forever;
  const generator<int> b = std::move(a);
  // NOLINTNEXTLINE(bugprone-use-after-move): the mistake
  generator<int> c = [&](auto& yield) { yield(pirn::elements_of(a)); };
  EXPECT_EQ(message_of([&] { static_cast<void>(c.begin()); }), "pirn: generator: it has been moved from");
}

TEST(generator_misuse, advanced_past_the_end) {
  generator<int> one = [](auto& yield) { yield(1); };
  auto it = one.begin();
  ++it;
  EXPECT_TRUE(it == one.end());
  EXPECT_EQ(message_of([&] { ++it; }), "pirn: generator: its iterator was advanced past the end");
}

TEST(generator_misuse, a_second_iterator) {
  generator<int> numbers = forever;
  auto it = numbers.begin();
  EXPECT_NE(message_of([&] { static_cast<void>(numbers.begin()); }).find("already running or being iterated"),
            std::string::npos);
  ++it;
  EXPECT_EQ(*it, 2);
}

TEST(generator_misuse, iterated_by_its_own_body) {
  generator<int>* self = nullptr;
  std::string message;
  generator<int> numbers = [&](auto& yield) {
    message = message_of([&] { static_cast<void>(self->begin()); });
    yield(1);
  };
  self = &numbers;
  EXPECT_EQ(*numbers.begin(), 1);
  EXPECT_NE(message.find("running"), std::string::npos) << message;
}

TEST(generator_misuse, advanced_by_its_own_body) {
  generator<int>::iterator* own = nullptr;
  std::string message;
  generator<int> numbers = [&](auto& yield) {
    yield(1);
    message = message_of([&] { ++*own; });
    yield(2);
  };
  auto it = numbers.begin();
  own = &it;
  ++it;
  EXPECT_EQ(*it, 2);
  EXPECT_NE(message.find("running"), std::string::npos) << message;
}

TEST(generator_misuse, delegated_to_itself) {
  generator<int>* self = nullptr;
  generator<int> numbers = [&](auto& yield) { yield(pirn::elements_of(*self)); };
  self = &numbers;
  EXPECT_NE(message_of([&] { static_cast<void>(numbers.begin()); }).find("running"), std::string::npos);
}

TEST(generator_misuse, yielded_from_outside) {
  generator<int>::yield* outside = nullptr;
  generator<int> numbers = [&](auto& yield) {
    outside = &yield;
    yield(1);
    yield(2);
  };
  auto it = numbers.begin();
  EXPECT_EQ(message_of([&] { (*outside)(3); }), "pirn: generator: yield was called while its generator is not running");
  generator<int> other = [](auto&) {};
  EXPECT_EQ(message_of([&] { (*outside)(pirn::elements_of(other)); }),
            "pirn: generator: yield was called while its generator is not running");
  ++it;
  EXPECT_EQ(*it, 2);
}

TEST(generator_misuse, a_moved_iterator) {
  generator<int> numbers = forever;
  auto a = numbers.begin();
  auto b = std::move(a);
  // NOLINTNEXTLINE(bugprone-use-after-move): the mistake
  EXPECT_NE(message_of([&] { ++a; }), "nothing was thrown");
  EXPECT_EQ(*b, 1);
}

TEST(generator_misuse_death, destroyed_while_it_runs) {
  const auto destroy = [] {
    generator<int>* self = nullptr;
    self = new generator<int>([&](auto& yield) {
      delete self;
      yield(1);
    });
    static_cast<void>(self->begin());
  };
  EXPECT_DEATH(destroy(), "destroyed while it was running");
}

TEST(generator_misuse_death, destroyed_before_its_iterator) {
  const auto destroy = [] {
    auto numbers = std::make_unique<generator<int>>(forever);
    auto it = numbers->begin();
    numbers.reset();
  };
  EXPECT_DEATH(destroy(), "before its iterator");
}

TEST(generator_misuse, yielded_as_another_one_that_waits) {
  // The outer one's yield, called by the inner one's body, suspends both; they continue, and end, together.
  int alive = 0;
  bool went_on = false;
  {
    generator<int> outer = [&](auto& yield) {
      const counted local(alive);
      {
        generator<int> inner = [&](auto& own) {
          const counted inner_local(alive);
          own(1);
          yield(2);
          own(3);
        };
        for (const int i : inner) {
          yield(i * 10);
        }
      }
      went_on = true;
      for (;;) {
        yield(5);
      }
    };
    auto it = outer.begin();
    EXPECT_EQ(*it, 10);
    ++it;
    EXPECT_EQ(*it, 2);
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
  EXPECT_FALSE(went_on);
}

TEST(generator_misuse, goes_on_after_it_was_cancelled) {
  int alive = 0, answers = 0;
  const auto before = pirn::forced_unwind::set_reporter([](const char*) noexcept {});
  {
    generator<int> numbers = [&](auto& yield) {
      const counted local(alive);
      while (answers < 3) {
        try {
          try {
            yield(1);
          } catch (...) {
            ++answers;
            throw 5;
          }
        } catch (int) {
        }
      }
      yield(2);
    };
    EXPECT_EQ(*numbers.begin(), 1);
  }
  pirn::forced_unwind::set_reporter(before);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(answers, 3);
}

// The unwind ends the body at the next yield after its answer, in the handler or in the code after it.
TEST(generator_misuse, is_unwound_from_its_next_yield_after_it_answered) {
  const auto before = pirn::forced_unwind::set_reporter([](const char*) noexcept {});
  for (const bool inside : {true, false}) {
    int alive = 0, went_on = 0;
    {
      generator<int> numbers = [&](auto& yield) {
        const counted local(alive);
        try {
          try {
            yield(1);
          } catch (...) {
            throw 5;
          }
        } catch (int) {
          if (inside) {
            yield(2);
            ++went_on;
          }
        }
        for (int i = 0; i < 3; ++i) {
          yield(3);
          ++went_on;
        }
      };
      EXPECT_EQ(*numbers.begin(), 1);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(went_on, 0) << inside;
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  }
  pirn::forced_unwind::set_reporter(before);
}

TEST(generator_misuse_death, goes_on_for_ever) {
  const auto destroy = [] {
    generator<int> numbers = [](auto& yield) {
      for (;;) {
        try {
          try {
            yield(1);
          } catch (...) {
            throw 5;
          }
        } catch (int) {
        }
      }
    };
    static_cast<void>(numbers.begin());
  };
  EXPECT_DEATH(destroy(), "a generator that was destroyed.*keeps yielding");
}

TEST(generator_misuse_death, suspended_in_a_destructor_that_an_exception_runs) {
  const auto destroy = [] {
    generator<int> numbers = [](auto& yield) {
      struct talkative {
        generator<int>::yield& out;
        ~talkative() noexcept(false) { out(1); }
      };
      try {
        const talkative last{yield};
        throw 5;
      } catch (int) {
      }
    };
    static_cast<void>(numbers.begin());
  };
  EXPECT_DEATH(destroy(), "while an exception was in flight, perhaps that of a destructor");
}

TEST(generator_misuse_death, suspended_by_a_continuation_of_its_body) {
  const auto destroy = [] {
    pirn::guarded_pool pool;
    generator<int> numbers = [&](auto& yield) {
      pirn::continuation<> other(pool, [&](pirn::continuation<> back) {
        yield(1);
        return std::move(back).finish();
      });
      std::move(other).resume();
    };
    static_cast<void>(numbers.begin());
  };
  EXPECT_DEATH(destroy(), "a generator whose yield was called on the stack of a continuation");
}

TEST(generator_misuse_death, a_for_each_stopped_under_noexcept) {
  const auto quiet = [](auto& yield) noexcept {
    yield(1);
    yield(2);
  };
  const auto by_destructor = [](auto& yield) {
    struct talkative {
      decltype(yield) out;
      ~talkative() { out(1); }
    } last{yield};
  };
  const auto refuses = [](int) { return false; };
  const auto throws = [](int) { throw std::runtime_error("consumer"); };
  const char* const says = "pirn: for_each: its consumer has stopped or thrown.*under noexcept";
  EXPECT_DEATH(pirn::for_each<int>(quiet, refuses), says);
  EXPECT_DEATH(pirn::for_each<int>(quiet, throws), says);
  EXPECT_DEATH(pirn::for_each<int>(by_destructor, refuses), says);
}

TEST(generator_misuse_death, what_ends_the_program_after_a_stop_is_none_of_its_business) {
  const auto run = [] {
    std::set_terminate([] {
      std::fputs("the handler that was there", stderr);
      std::abort();
    });
    pirn::for_each<int>(forever, [](int) { return false; });
    const auto quiet = [](auto call) noexcept { call(); };
    quiet([] { throw 5; });
  };
  EXPECT_DEATH(run(), "^the handler that was there");
}

TEST(generator_misuse_death, suspended_under_noexcept) {
  const auto destroy = [] {
    generator<int> numbers = [](auto& yield) {
      const auto quiet = [&]() noexcept { yield(1); };
      quiet();
    };
    static_cast<void>(numbers.begin());
  };
  EXPECT_DEATH(destroy(), "a generator that was destroyed.*noexcept");
}

}  // namespace
