// The ends of a continuation: by finish, by being dropped, by an exception; and misuse that is refused.

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "context/continuation_support.hpp"
#include "pirn/context/continuation.hpp"

namespace {

using pirn::continuation;
using support::mark;
using support::stacks;

// ---- finish -----------------------------------------------------------------------------------------------------

TEST(continuation_end, finish_leaves_an_empty_one_and_its_last_values) {
  stacks memory;
  std::vector<int> gone;
  continuation<std::string> k(
      memory, [m = mark(gone, 1), &gone](continuation<std::string> back, const std::string& first) {
        const mark local(gone, 2);
        return std::move(back).finish(first + " and the rest, which is too long to lie in place");
      });
  EXPECT_TRUE(gone.empty());
  auto [k2, last] = std::move(k).resume("first");
  EXPECT_FALSE(k2);
  EXPECT_EQ(last, "first and the rest, which is too long to lie in place");
  EXPECT_EQ(gone, (std::vector{2, 1}));
  EXPECT_EQ(memory.in_use, 0U);
}

/// Counts how many are alive.
struct counted {
  static inline int alive = 0;
  counted() { ++alive; }
  counted(const counted&) { ++alive; }
  counted(counted&&) noexcept { ++alive; }
  counted& operator=(const counted&) = default;
  counted& operator=(counted&&) = default;
  ~counted() { --alive; }
};

TEST(continuation_end, every_value_is_destroyed_once) {
  counted::alive = 0;
  {
    stacks memory;
    continuation<counted, std::vector<counted>> k(
        memory, [](auto back, counted a, std::vector<counted> b) -> decltype(back)::finished {
          std::tie(a, b) = back.exchange(a, b);
          b.emplace_back();
          return std::move(back).finish(a, b);
        });
    k.exchange({}, std::vector<counted>(3));
    EXPECT_EQ(std::get<1>(k.exchange({}, std::vector<counted>(3))).size(), 4U);
    EXPECT_FALSE(k);
  }
  EXPECT_EQ(counted::alive, 0);
}

// A body may finish to any continuation; here to one that never resumed it.
TEST(continuation_end, finish_may_go_to_somebody_else) {
  stacks memory;
  continuation<int> parked;
  continuation<int> listener(memory, [&parked](continuation<int> back, int x) {
    const int heard = back.exchange(x);
    EXPECT_FALSE(back);  // its peer has ended
    return std::move(parked).finish(heard + 1);
  });
  EXPECT_EQ(listener.exchange(1), 1);
  continuation<int> speaker(memory, [&parked, &listener](continuation<int> back, int x) {
    parked = std::move(back);
    return std::move(listener).finish(x * 10);
  });
  EXPECT_EQ(speaker.exchange(3), 31);
  EXPECT_FALSE(speaker);
  EXPECT_FALSE(listener);
  EXPECT_EQ(memory.in_use, 0U);
}

/// Throws when `left` moves have been made.
struct dies_on_a_move {
  static inline int left = 0;
  explicit dies_on_a_move(std::vector<int>& log) : gone(log, 1) {}
  // NOLINTNEXTLINE(performance-noexcept-move-constructor): that is what is tested
  dies_on_a_move(dies_on_a_move&& other) : gone(std::move(other.gone)) {
    if (--left == 0) {
      throw std::runtime_error("moved");
    }
  }
  mark gone;
};

// Wherever a last value throws as it is moved, its receiver gets the exception.
TEST(continuation_end, a_last_value_that_throws_when_moved_goes_to_what_the_body_was_lent) {
  bool arrived = false;
  for (int moves = 1; !arrived; ++moves) {
    ASSERT_LT(moves, 10);
    stacks memory;
    std::vector<int> gone;
    continuation<dies_on_a_move(int)> k(memory, [&](continuation<int(dies_on_a_move)>& back, int at) {
      dies_on_a_move::left = at;
      return std::move(back).finish(dies_on_a_move(gone));
    });
    try {
      auto [ended, last] = std::move(k).resume(moves);
      EXPECT_FALSE(ended);
      arrived = true;
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "moved");
    }
    EXPECT_EQ(gone, (std::vector{1})) << moves;
    EXPECT_EQ(memory.in_use, 0U) << moves;
  }
}

TEST(continuation_end, what_finish_throws_leaves_where_it_would_have_gone) {
  stacks memory;
  std::vector<int> gone;
  continuation<dies_on_a_move(int)> k(memory, [&](continuation<int(dies_on_a_move)> back, int at) {
    for (;;) {
      try {
        dies_on_a_move::left = at;
        return std::move(back).finish(dies_on_a_move(gone));
      } catch (const std::runtime_error&) {
        at = 0;
      }
    }
  });
  auto [ended, last] = std::move(k).resume(1);
  EXPECT_FALSE(ended);
  EXPECT_EQ(memory.in_use, 0U);
}

TEST(continuation_end, a_finish_that_is_not_returned_drops) {
  stacks memory;
  std::vector<int> gone;
  const auto suspended = [&](int number) {
    continuation<int> k(memory, [&gone, number](continuation<int>& back, int x) -> continuation<int>::finished {
      const mark local(gone, number);
      for (;;) {
        x = back.exchange(x);
      }
    });
    k.exchange(0);
    return k;
  };
  try {
    const auto last = suspended(1).finish(5);
    throw std::runtime_error("before it was returned");
  } catch (const std::runtime_error&) {
    EXPECT_EQ(gone, (std::vector{1}));
  }
  {
    auto one = suspended(2).finish(5);
    const auto two = std::move(one);
    EXPECT_EQ(gone, (std::vector{1}));
  }
  EXPECT_EQ(gone, (std::vector{1, 2})) << "once";
  EXPECT_EQ(memory.in_use, 0U);
}

TEST(continuation_end, a_finish_may_be_kept_until_the_end) {
  stacks memory;
  std::vector<int> gone;
  continuation<std::vector<int>> k(memory, [&gone](continuation<std::vector<int>> back, std::vector<int> first) {
    const mark local(gone, 1);
    auto one = std::move(back).finish(std::move(first));
    auto two = std::move(one);
    return two;
  });
  EXPECT_EQ(k.exchange({1, 2}), (std::vector{1, 2}));
  EXPECT_FALSE(k);
  EXPECT_EQ(gone, (std::vector{1}));
  EXPECT_EQ(memory.in_use, 0U);
}

// ---- dropped ----------------------------------------------------------------------------------------------------

TEST(continuation_end, dropping_unwinds_innermost_first) {
  stacks memory;
  std::vector<int> gone;
  {
    continuation<> k(memory, [m = mark(gone, 3), &gone](continuation<> back) -> continuation<>::finished {
      const mark outer(gone, 2);
      const auto deeper = [&gone](continuation<>& b) PIRN_NOINLINE {
        const mark inner(gone, 1);
        b.exchange();
      };
      deeper(back);
      gone.push_back(99);
      return std::move(back).finish();
    });
    k = std::move(k).resume();
    EXPECT_TRUE(gone.empty());
  }
  EXPECT_EQ(gone, (std::vector{1, 2, 3}));
  EXPECT_EQ(memory.in_use, 0U);
}

TEST(continuation_end, dropping_one_that_never_ran_destroys_its_body) {
  stacks memory;
  std::vector<int> gone;
  {
    const continuation<int> k(memory,
                              [m = mark(gone, 1)](continuation<int> back, int x) { return std::move(back).finish(x); });
  }
  EXPECT_EQ(gone, (std::vector{1}));
  EXPECT_EQ(memory.in_use, 0U);
}

TEST(continuation_end, assignment_drops_what_was_there) {
  stacks memory;
  std::vector<int> gone;
  const auto make = [&](int number) {
    return continuation<>(memory, [m = mark(gone, number)](continuation<> back) { return std::move(back).finish(); });
  };
  continuation<> k = make(1);
  k = make(2);
  EXPECT_EQ(gone, (std::vector{1}));
  k = continuation<>();
  EXPECT_EQ(gone, (std::vector{1, 2}));
  EXPECT_EQ(memory.in_use, 0U);
}

TEST(continuation_end, one_assigned_to_itself_stays) {
  stacks memory;
  continuation<int> k(memory, [](continuation<int> back, int x) -> continuation<int>::finished {
    for (;;) {
      x = back.exchange(x + 1);
    }
  });
  EXPECT_EQ(k.exchange(1), 2);
  auto& same = k;
  k = std::move(same);
  ASSERT_TRUE(k);
  EXPECT_EQ(k.exchange(5), 6);
}

// A continuation that lies on the stack of a dropped one is dropped with it.
TEST(continuation_end, a_chain_is_unwound_from_its_far_end) {
  stacks memory;
  std::vector<int> gone;
  struct maker {
    stacks& memory;
    std::vector<int>& gone;
    continuation<> operator()(int depth) {
      continuation<> k(memory, [this, depth](continuation<> back) -> continuation<>::finished {
        const mark local(gone, depth);
        const continuation<> next = depth == 0 ? continuation<>() : (*this)(depth - 1);
        for (;;) {
          back = std::move(back).resume();
        }
      });
      return std::move(k).resume();
    }
  } make{memory, gone};
  {
    const continuation<> top = make(4);
    EXPECT_EQ(memory.in_use, 5U);
  }
  EXPECT_EQ(gone, (std::vector{0, 1, 2, 3, 4}));
  EXPECT_EQ(memory.in_use, 0U);
}

TEST(continuation_end, dropped_while_an_exception_is_on_its_way) {
  stacks memory;
  std::vector<int> gone;
  try {
    continuation<> k(memory, [&gone](continuation<> back) -> continuation<>::finished {
      const mark local(gone, 1);
      for (;;) {
        back = std::move(back).resume();
      }
    });
    k = std::move(k).resume();
    throw std::runtime_error("on its way");
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "on its way");
  }
  EXPECT_EQ(gone, (std::vector{1}));
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

std::string reported;  // NOLINT(runtime/string)
void note_report(const char* line) noexcept { reported = line; }

TEST(continuation_end, catch_all_does_not_stop_the_unwind) {
  stacks memory;
  std::vector<int> gone;
  const auto earlier = pirn::forced_unwind::set_reporter(&note_report);
  {
    continuation<> k(memory, [&gone](continuation<> back) -> continuation<>::finished {
      const mark outer(gone, 2);
      for (;;) {
        try {
          const mark inner(gone, 1);
          back = std::move(back).resume();
        } catch (...) {  // NOLINT(bugprone-empty-catch): that is what is tested
        }
        gone.push_back(99);
      }
    });
    k = std::move(k).resume();
  }
  pirn::forced_unwind::set_reporter(earlier);
  EXPECT_EQ(gone, (std::vector{1, 2}));
  EXPECT_NE(reported.find("catch (...)"), std::string::npos) << reported;
  EXPECT_EQ(memory.in_use, 0U);
}

TEST(continuation_end, an_exception_does_not_stop_the_unwind) {
  stacks memory;
  std::vector<int> gone;
  const auto earlier = pirn::forced_unwind::set_reporter(&note_report);
  reported.clear();
  {
    continuation<> k(memory, [&gone](continuation<>& back) -> continuation<>::finished {
      const mark outer(gone, 1);
      try {
        back.exchange();
      } catch (...) {
        throw std::runtime_error("instead");
      }
      return std::move(back).finish();
    });
    k = std::move(k).resume();
  }
  pirn::forced_unwind::set_reporter(earlier);
  EXPECT_EQ(gone, (std::vector{1}));
  EXPECT_NE(reported.find("another exception"), std::string::npos) << reported;
  EXPECT_EQ(memory.in_use, 0U);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  // The next one is unwound as usual.
  {
    continuation<> k(memory, [&gone](continuation<>& back) -> continuation<>::finished {
      const mark outer(gone, 2);
      back.exchange();
      return std::move(back).finish();
    });
    k = std::move(k).resume();
  }
  EXPECT_EQ(gone, (std::vector{1, 2}));
}

// ---- exceptions -------------------------------------------------------------------------------------------------

TEST(continuation_end, an_exception_goes_to_what_the_body_was_lent) {
  stacks memory;
  std::vector<int> gone;
  continuation<int> k(memory, [&gone](continuation<int>& back, int x) -> continuation<int>::finished {
    const mark local(gone, 1);
    for (;;) {
      if (x == 3) {
        throw std::runtime_error("three");
      }
      x = back.exchange(x);
    }
  });
  EXPECT_EQ(k.exchange(1), 1);
  EXPECT_EQ(k.exchange(2), 2);
  try {
    k.exchange(3);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "three");
  }
  EXPECT_FALSE(k);
  EXPECT_EQ(gone, (std::vector{1}));
  EXPECT_EQ(memory.in_use, 0U);
}

// The last resumer need not be the first.
TEST(continuation_end, an_exception_goes_to_the_last_resumer) {
  stacks memory;
  continuation<int> thrower(memory, [](continuation<int>& back, int x) -> continuation<int>::finished {
    x = back.exchange(x);
    throw x;
  });
  EXPECT_EQ(thrower.exchange(1), 1);
  continuation<int> other(memory, [&thrower](continuation<int>& back, int x) -> continuation<int>::finished {
    try {
      thrower.exchange(x);
    } catch (int caught) {
      return std::move(back).finish(caught * 10);
    }
    return std::move(back).finish(0);
  });
  EXPECT_EQ(other.exchange(7), 70);
  EXPECT_FALSE(other);
  EXPECT_FALSE(thrower);
  EXPECT_EQ(memory.in_use, 0U);
}

TEST(continuation_end, exceptions_inside_a_body_stay_inside) {
  stacks memory;
  continuation<int> k(memory, [](continuation<int> back, int x) -> continuation<int>::finished {
    for (;;) {
      try {
        throw x;
      } catch (int caught) {
        x = caught + 1;
      }
      x = back.exchange(x);
    }
  });
  EXPECT_EQ(k.exchange(1), 2);
  EXPECT_EQ(k.exchange(5), 6);
}

struct cannot_be_moved {
  cannot_be_moved() = default;
  // NOLINTNEXTLINE(performance-noexcept-move-constructor): that is what is tested
  cannot_be_moved(cannot_be_moved&& /*other*/) { throw std::runtime_error("moved"); }
  continuation<>::finished operator()(continuation<> back) const { return std::move(back).finish(); }
};

TEST(continuation_end, a_body_that_cannot_be_moved_gives_the_stack_back) {
  stacks memory;
  EXPECT_THROW(continuation<>(memory, cannot_be_moved()), std::runtime_error);
  EXPECT_EQ(memory.in_use, 0U);
}

// ---- refused ----------------------------------------------------------------------------------------------------

template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const std::logic_error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(continuation_end, using_one_twice_is_refused) {
  stacks memory;
  continuation<int> k(memory, [](continuation<int> back, int x) -> continuation<int>::finished {
    for (;;) {
      x = back.exchange(x);
    }
  });
  auto [k2, x] = std::move(k).resume(1);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  EXPECT_NE(message_of([&] { std::move(k).resume(2); }).find("continuation::resume"), std::string::npos);
  EXPECT_NE(message_of([&] { k.exchange(2); }).find("empty"), std::string::npos);
  EXPECT_NE(message_of([&] { static_cast<void>(std::move(k).finish(2)); }).find("continuation::finish"),
            std::string::npos);
  const continuation<int> k3 = std::move(k2);
  EXPECT_NE(message_of([&] { k2.exchange(2); }).find("moved from"), std::string::npos);
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_NE(message_of([] { continuation<>().resume(); }).find("empty"), std::string::npos);
}

TEST(continuation_end, one_that_has_ended_is_refused) {
  stacks memory;
  continuation<> k(memory, [](continuation<> back) { return std::move(back).finish(); });
  k = std::move(k).resume();
  EXPECT_NE(message_of([&] { k.exchange(); }).find("has ended"), std::string::npos);
}

TEST(continuation_end, no_stack_is_an_error) {
  stacks memory(0);
  const auto body = [](continuation<> back) { return std::move(back).finish(); };
  EXPECT_THROW(continuation<>(memory, body), std::system_error);
  EXPECT_THROW(continuation<>::start(memory, body), std::system_error);
  alignas(16) std::byte few[256];
  EXPECT_THROW(continuation<>(support::memory{few, few + sizeof few}, body), std::length_error);
  stacks some;
  EXPECT_THROW(continuation<>(some, body, 192), std::length_error);
  EXPECT_EQ(some.in_use, 0U);
}

void lose_the_way_back() {
  stacks memory;
  continuation<> k(memory,
                   [](continuation<> /*back*/) -> continuation<>::finished { throw std::runtime_error("lost"); });
  k = std::move(k).resume();
}
void throw_without_an_heir() {
  stacks memory;
  continuation<> kept;
  continuation<> k(memory, [&kept](continuation<>& back) -> continuation<>::finished {
    kept = std::move(back);
    throw std::runtime_error("no heir");
  });
  k = std::move(k).resume();
}

void finish_into_a_fresh_one() {
  stacks memory;
  continuation<> fresh(memory, [](continuation<> back) { return std::move(back).finish(); });
  continuation<> kept;
  continuation<> k(memory, [&](continuation<> back) {
    kept = std::move(back);
    return std::move(fresh).finish();
  });
  k = std::move(k).resume();
}

// The stack of a thread has no frame below in which an unwind could end.
TEST(continuation_end_death, an_exception_that_drops_a_threads_continuation_ends_the_program) {
  EXPECT_DEATH(lose_the_way_back(), "dropped by an exception.*that of a thread");
}
TEST(continuation_end_death, an_exception_without_an_heir_ends_the_program) {
  EXPECT_DEATH(throw_without_an_heir(), "there is no continuation to throw it to");
}
TEST(continuation_end_death, a_last_switch_to_one_that_has_not_begun_ends_the_program) {
  EXPECT_DEATH(finish_into_a_fresh_one(), "to a continuation that has not begun");
}

}  // namespace
