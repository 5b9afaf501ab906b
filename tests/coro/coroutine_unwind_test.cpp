// Destroying a suspended coroutine. The unwinder itself is tested in tests/context/forced_unwind_test.cpp.
#include <alloca.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "pirn/coro/coroutine.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"

namespace {

#if !defined(PIRN_TEST_COPIED)  // copied_support.hpp has its own
using pirn::coroutine;
#endif
using yields = coroutine<int(int)>::yield;

struct note {
  std::vector<int>& to;
  int number;
  ~note() { to.push_back(number); }
};

std::vector<std::string> reports;
class coroutine_unwind_test : public testing::Test {
 protected:
  coroutine_unwind_test() {
    reports.clear();
    pirn::forced_unwind::set_reporter([](const char* line) noexcept { reports.emplace_back(line); });
  }
  ~coroutine_unwind_test() override { pirn::forced_unwind::set_reporter(nullptr); }
  std::vector<int> log;
};
using coroutine_unwind_death_test = coroutine_unwind_test;

int nested(yields& yield, std::vector<int>& log, int depth) {
  const note here{log, depth};
  return depth == 0 ? yield(1) : nested(yield, log, depth - 1) + 1;
}

TEST_F(coroutine_unwind_test, destroying_runs_destructors_in_order) {
  {
    coroutine<int(int)> one([this](yields& yield, int) { return nested(yield, log, 5); });
    EXPECT_EQ(one.resume(0), 1);
    EXPECT_TRUE(log.empty());
  }
  EXPECT_EQ(log, (std::vector{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

// Without PIRN_NONE clang writes wrong unwind tables for such a frame; with AddressSanitizer that is empty.
#if !defined(PIRN_ASAN)
PIRN_NONE PIRN_NOINLINE int beside_alloca(yields& yield, std::vector<int>& log, int size) {
  const note here{log, size};
  alignas(64) int aligned[16] = {size};
  auto* const bytes = static_cast<char*>(alloca(static_cast<std::size_t>(size)));
  asm volatile("" : : "r"(bytes), "r"(aligned) : "memory");
  const int got = yield(1);
  asm volatile("" : : "r"(bytes), "r"(aligned) : "memory");
  if (got == 3) {
    throw std::runtime_error("three");
  }
  return aligned[0];
}

TEST_F(coroutine_unwind_test, through_a_frame_that_has_a_base_register) {
  const auto body = [this](yields& yield, int size) { return beside_alloca(yield, log, size); };
  coroutine<int(int)> one(body);
  one.resume(100);
  EXPECT_EQ(one.resume(1), 100);
  coroutine<int(int)> two(body);
  two.resume(200);
  EXPECT_THROW(two.resume(3), std::runtime_error);
  {
    coroutine<int(int)> three(body);
    three.resume(300);
  }
  EXPECT_EQ(log, (std::vector{100, 200, 300}));
}
#endif

TEST_F(coroutine_unwind_test, counts_as_one_exception_however_often_it_is_rethrown) {
  struct counts {
    std::vector<int>& to;
    ~counts() { to.push_back(std::uncaught_exceptions()); }
  };
  {
    coroutine<int(int)> one([this](yields& yield, int) {
      const counts outermost{log};
      try {
        const counts outer{log};
        try {
          const counts inner{log};
          return yield(1);
        } catch (...) {
          throw;
        }
      } catch (...) {
        throw;
      }
    });
    one.resume(0);
  }
  EXPECT_EQ(log, (std::vector{1, 1, 1}));
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST_F(coroutine_unwind_test, the_stack_goes_back_and_is_used_again) {
  pirn::guarded_pool pool;
  for (int i = 0; i < 3; ++i) {
    coroutine<int(int)> one(pool, [this](yields& yield, int) { return nested(yield, log, 2); });
    one.resume(0);
  }
  EXPECT_EQ(log.size(), 9u);
  EXPECT_EQ(pool.statistics().in_use, 0u);
  EXPECT_EQ(pool.statistics().idle, 1u);
}

TEST_F(coroutine_unwind_test, swallowing_is_overruled) {
  {
    coroutine<int(int)> one([this](yields& yield, int) {
      const note outer{log, 2};
      for (;;) {
        try {
          const note inner{log, 1};
          yield(1);
        } catch (...) {
        }
      }
      return 0;
    });
    one.resume(0);
  }
  EXPECT_EQ(log, (std::vector{1, 2}));
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(coroutine_unwind_test, yielding_again_is_overruled) {
  {
    coroutine<int(int)> one([this](yields& yield, int) {
      const note outer{log, 2};
      try {
        yield(1);
      } catch (...) {
        const note inner{log, 1};
        yield(2);
        log.push_back(-1);
      }
      return 0;
    });
    one.resume(0);
  }
  EXPECT_EQ(log, (std::vector{1, 2}));
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(coroutine_unwind_test, another_exception_is_dropped_and_reported) {
  {
    coroutine<int(int)> one([this](yields& yield, int) -> int {
      const note outer{log, 2};
      try {
        return yield(1);
      } catch (...) {
        throw std::runtime_error("instead");
      }
    });
    one.resume(0);
  }
  EXPECT_EQ(log, (std::vector{2}));
  EXPECT_EQ(reports.size(), 1u);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_EQ(std::current_exception(), nullptr);
}

TEST_F(coroutine_unwind_test, a_return_instead_ends_it_too) {
  {
    coroutine<std::string()> one([](auto& yield) -> std::string {
      try {
        try {
          yield("a");
        } catch (...) {
          throw 1;
        }
      } catch (int) {
      }
      return std::string(100, 'b');  // it is lost
    });
    EXPECT_EQ(one.resume(), "a");
  }
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(coroutine_unwind_test, in_a_catch_block_of_either_side) {
  try {
    throw 1;
  } catch (int) {
    coroutine<int(int)> one([this](yields& yield, int) -> int {
      const note outer{log, 3};
      try {
        throw std::string("own");
      } catch (const std::string&) {
        const note inner{log, 1};
        try {
          return yield(1);
        } catch (...) {
          log.push_back(2);
          throw;
        }
      }
    });
    one.resume(0);
    one.reset();
    EXPECT_NE(std::current_exception(), nullptr);
  }
  EXPECT_EQ(log, (std::vector{2, 1, 3}));
  EXPECT_EQ(std::current_exception(), nullptr);
}

TEST_F(coroutine_unwind_test, by_an_exception_that_passes_its_owner) {
  EXPECT_THROW(
      {
        coroutine<int(int)> one([this](yields& yield, int) { return nested(yield, log, 1); });
        one.resume(0);
        throw std::runtime_error("the owner's");
      },
      std::runtime_error);
  EXPECT_EQ(log, (std::vector{0, 1}));
}

TEST_F(coroutine_unwind_test, inner_ones_go_with_the_outer) {
  {
    coroutine<int(int)> outer([this](yields& yield, int) {
      const note last{log, 10};
      coroutine<int(int)> inner([this](yields& to, int) { return nested(to, log, 1); });
      inner.resume(0);
      return yield(1);
    });
    outer.resume(0);
  }
  EXPECT_EQ(log, (std::vector{0, 1, 10}));
}

TEST_F(coroutine_unwind_test, on_another_thread) {
  coroutine<int(int)> one([this](yields& yield, int) { return nested(yield, log, 1); });
  one.resume(0);
  std::thread([mine = std::move(one)]() mutable { mine.reset(); }).join();
  EXPECT_EQ(log, (std::vector{0, 1}));
}

TEST_F(coroutine_unwind_test, within_the_unwinding_of_another) {
  {
    coroutine<int(int)> outer([this](yields& yield, int) {
      struct owner {
        coroutine<int(int)> inner;
        std::vector<int>& to;
        ~owner() {
          inner.reset();
          to.push_back(5);
        }
      };
      owner owns{coroutine<int(int)>([this](yields& to, int) { return nested(to, log, 1); }), log};
      owns.inner.resume(0);
      return yield(1);
    });
    outer.resume(0);
  }
  EXPECT_EQ(log, (std::vector{0, 1, 5}));
}

TEST_F(coroutine_unwind_death_test, suspended_in_a_destructor) {
  const auto run = [] {
    coroutine<int(int)> one([](yields& yield, int) {
      struct yields_last {
        yields& to;
        ~yields_last() { to(1); }
      };
      const yields_last last{yield};
      return 0;
    });
    one.resume(0);
  };
  EXPECT_DEATH(run(), "coroutine\" cannot be unwound: it is suspended under noexcept");
}

// noexcept(false) has no effect there, so it is not tested.
TEST_F(coroutine_unwind_death_test, suspends_in_a_destructor_that_the_unwind_runs) {
  const auto run = [] {
    coroutine<void()> stubborn([](auto& yield) {
      struct last_word {
        coroutine<void()>::yield& of;
        ~last_word() noexcept(false) { of(); }
      } last{yield};
      yield();
    });
    stubborn.resume();
  };
  EXPECT_DEATH(run(), "coroutine\" cannot be unwound: it suspended again while it was being unwound, in a destructor");
}

TEST_F(coroutine_unwind_death_test, suspends_without_end) {
  const auto run = [] {
    coroutine<int(int)> one([](yields& yield, int) {
      for (;;) {
        try {
          try {
            yield(1);
          } catch (...) {
            throw 1;
          }
        } catch (int) {
        }
      }
      return 0;
    });
    one.resume(0);
  };
  EXPECT_DEATH(run(), "cannot be unwound: it keeps suspending");
}

}  // namespace
