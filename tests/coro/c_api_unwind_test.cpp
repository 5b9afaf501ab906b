// The C API as a C++ program sees it when it destroys a suspended coroutine.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/pirn.h"

namespace {

struct mark {
  std::vector<int>& list;
  int number;
  ~mark() { list.push_back(number); }
};

std::vector<int> gone;

void* holds_marks(pirn_coroutine* self, void* first) {
  const mark outer{gone, 2};
  try {
    const mark inner{gone, 1};
    pirn_yield(self, first, &first);
  } catch (const std::exception&) {
    gone.push_back(99);
  }
  return first;
}

TEST(c_api_unwind, destructors_run_innermost_first) {
  gone.clear();
  pirn_coroutine* co = nullptr;
  ASSERT_EQ(pirn_create(&co, nullptr, &holds_marks, nullptr), 0);
  EXPECT_EQ(pirn_resume(co, nullptr, nullptr), PIRN_YIELDED);
  EXPECT_EQ(pirn_destroy(co), 0);
  EXPECT_EQ(gone, (std::vector{1, 2}));
}

void* swallows(pirn_coroutine* self, void* first) {
  const mark outer{gone, 2};
  for (;;) {
    try {
      const mark inner{gone, 1};
      pirn_yield(self, first, nullptr);
    } catch (...) {  // NOLINT(bugprone-empty-catch): that is what is tested
    }
    gone.push_back(99);
  }
}

TEST(c_api_unwind, catch_all_does_not_stop_it) {
  gone.clear();
  pirn_coroutine* co = nullptr;
  ASSERT_EQ(pirn_create(&co, nullptr, &swallows, nullptr), 0);
  EXPECT_EQ(pirn_resume(co, nullptr, nullptr), PIRN_YIELDED);
  EXPECT_EQ(pirn_destroy(co), 0);
  EXPECT_EQ(gone, (std::vector{1, 2}));
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST(c_api_unwind, in_the_destructor_of_what_an_exception_destroys) {
  gone.clear();
  struct owner {
    pirn_coroutine* co = nullptr;
    ~owner() { pirn_destroy(co); }
  };
  try {
    owner it;
    ASSERT_EQ(pirn_create(&it.co, nullptr, &holds_marks, nullptr), 0);
    EXPECT_EQ(pirn_resume(it.co, nullptr, nullptr), PIRN_YIELDED);
    throw std::runtime_error("on its way");
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "on its way");
  }
  EXPECT_EQ(gone, (std::vector{1, 2}));
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST(c_api_unwind, from_inside_another_coroutine_none_yields) {
  gone.clear();
  pirn_coroutine* co = nullptr;
  ASSERT_EQ(pirn_create(
                &co, nullptr,
                [](pirn_coroutine* self, void* first) {
                  const mark outer{gone, 1};
                  pirn::coroutine<int()> inner([self](auto&) {
                    const mark own{gone, 2};
                    return pirn_yield(self, nullptr, nullptr);
                  });
                  EXPECT_EQ(inner.resume(), -EPERM);
                  for (const int error :
                       pirn::generator<int>([self](auto& yield) { yield(pirn_yield(self, nullptr, nullptr)); })) {
                    EXPECT_EQ(error, -EPERM);
                  }
                  EXPECT_EQ(pirn_yield(self, nullptr, nullptr), 0);
                  return first;
                },
                nullptr),
            0);
  EXPECT_EQ(pirn_resume(co, nullptr, nullptr), PIRN_YIELDED);
  EXPECT_EQ(gone, (std::vector{2}));
  EXPECT_EQ(pirn_destroy(co), 0);
  EXPECT_EQ(gone, (std::vector{2, 1}));
}

struct uses_itself {
  pirn_coroutine* self;
  ~uses_itself() {
    EXPECT_EQ(pirn_yield(self, nullptr, nullptr), -EPERM);
    EXPECT_EQ(pirn_resume(self, nullptr, nullptr), -EBUSY);
    EXPECT_EQ(pirn_destroy(self), -EBUSY);
    EXPECT_EQ(pirn_self(), self);
    gone.push_back(3);
  }
};

TEST(c_api_unwind, one_that_is_being_unwound_cannot_be_used) {
  gone.clear();
  pirn_coroutine* co = nullptr;
  ASSERT_EQ(pirn_create(
                &co, nullptr,
                [](pirn_coroutine* self, void* first) {
                  const uses_itself guard{self};
                  pirn_yield(self, first, &first);
                  return first;
                },
                nullptr),
            0);
  EXPECT_EQ(pirn_resume(co, nullptr, nullptr), PIRN_YIELDED);
  EXPECT_EQ(pirn_reset(co, &holds_marks, nullptr), 0);
  EXPECT_EQ(gone, (std::vector{3}));
  EXPECT_EQ(pirn_destroy(co), 0);
  EXPECT_EQ(pirn_self(), nullptr);
}

TEST(c_api_unwind, goes_on_in_another_thread) {
  pirn_coroutine* co = nullptr;
  ASSERT_EQ(pirn_create(
                &co, nullptr,
                [](pirn_coroutine* self, void* first) {
                  for (int i = 0; i < 40; ++i) {
                    EXPECT_EQ(pirn_self(), self);
                    EXPECT_EQ(pirn_yield(self, first, &first), 0);
                  }
                  return first;
                },
                nullptr),
            0);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(pirn_resume(co, nullptr, nullptr), PIRN_YIELDED);
    std::thread([&] {
      EXPECT_EQ(pirn_self(), nullptr);
      EXPECT_EQ(pirn_resume(co, nullptr, nullptr), PIRN_YIELDED);
      EXPECT_EQ(pirn_self(), nullptr);
    }).join();
  }
  EXPECT_EQ(pirn_resume(co, nullptr, nullptr), PIRN_ENDED);
  EXPECT_EQ(pirn_destroy(co), 0);
}

// ---- exceptions in flight ---------------------------------------------------------------------------------------

/// Counts how many are alive.
struct counted : std::runtime_error {
  static inline int alive = 0;
  explicit counted(const char* what) : std::runtime_error(what) { ++alive; }
  counted(const counted& other) : std::runtime_error(other) { ++alive; }
  ~counted() override { --alive; }
};

pirn_coroutine* suspended(pirn_function body, const void* first = nullptr) {
  pirn_coroutine* co = nullptr;
  EXPECT_EQ(pirn_create(&co, nullptr, body, nullptr), 0);
  EXPECT_EQ(pirn_resume(co, const_cast<void*>(first), nullptr), PIRN_YIELDED);
  return co;
}

void* yields_in_nested_catch_blocks(pirn_coroutine* self, void* first) {
  try {
    throw counted("outer");
  } catch (const counted& outer) {
    try {
      throw counted(static_cast<const char*>(first));
    } catch (const counted& inner) {
      pirn_yield(self, first, nullptr);
      try {
        throw;
      } catch (const counted& again) {
        EXPECT_STREQ(again.what(), static_cast<const char*>(first));
      }
    }
    pirn_yield(self, first, nullptr);
    EXPECT_STREQ(outer.what(), "outer");
  }
  EXPECT_EQ(std::current_exception(), nullptr);
  return nullptr;
}

TEST(c_api_unwind, each_has_its_own_exceptions) {
  pirn_coroutine* const a = suspended(&yields_in_nested_catch_blocks, "a");
  pirn_coroutine* const b = suspended(&yields_in_nested_catch_blocks, "b");
  EXPECT_EQ(std::current_exception(), nullptr);
  for (int i = 0; i < 2; ++i) {
    for (pirn_coroutine* const each : {a, b}) {
      EXPECT_EQ(pirn_resume(each, nullptr, nullptr), i == 0 ? PIRN_YIELDED : PIRN_ENDED);
      EXPECT_EQ(std::current_exception(), nullptr);
    }
  }
  EXPECT_EQ(counted::alive, 0);
  EXPECT_EQ(pirn_destroy(a), 0);
  EXPECT_EQ(pirn_destroy(b), 0);
}

TEST(c_api_unwind, what_it_had_caught_is_released) {
  try {
    throw counted("the destroyer's");
  } catch (const counted& mine) {
    pirn_coroutine* const co = suspended(&yields_in_nested_catch_blocks, "its own");
    EXPECT_EQ(counted::alive, 3);
    EXPECT_EQ(pirn_destroy(co), 0);
    EXPECT_EQ(counted::alive, 1);
    try {
      throw;
    } catch (const counted& again) {
      EXPECT_EQ(&again, &mine);
    }
  }
  EXPECT_EQ(counted::alive, 0);
  EXPECT_EQ(std::current_exception(), nullptr);
}

TEST(c_api_unwind, an_exception_instead_is_as_good) {
  gone.clear();
  pirn_coroutine* const co = suspended([](pirn_coroutine* self, void* first) -> void* {
    try {
      const mark outer{gone, 2};
      try {
        const mark inner{gone, 1};
        pirn_yield(self, first, nullptr);
      } catch (...) {
        throw 5;
      }
    } catch (int number) {
      gone.push_back(number);
      gone.push_back(std::uncaught_exceptions());
    }
    return first;
  });
  EXPECT_EQ(pirn_destroy(co), 0);
  EXPECT_EQ(gone, (std::vector{1, 2, 5, 0}));
  EXPECT_EQ(std::current_exception(), nullptr);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

void* answers_for_ever(pirn_coroutine* self, void* first) {
  for (;;) {
    try {
      try {
        pirn_yield(self, first, nullptr);
      } catch (...) {
        throw 5;
      }
    } catch (int) {  // NOLINT(bugprone-empty-catch): that is what is tested
    }
  }
}
void* answers_uncaught(pirn_coroutine* self, void* first) {
  try {
    pirn_yield(self, first, nullptr);
  } catch (...) {
    throw std::runtime_error("instead");
  }
  return first;
}
void* yields_under_noexcept(pirn_coroutine* self, void* first) noexcept {
  const mark local{gone, 1};
  pirn_yield(self, first, nullptr);
  return first;
}
struct yields_when_destroyed {
  pirn_coroutine* self;
  ~yields_when_destroyed() noexcept(false) { pirn_yield(self, nullptr, nullptr); }
};
void* yields_in_a_destructor(pirn_coroutine* self, void* first) {
  try {
    const yields_when_destroyed guard{self};
    throw 1;
  } catch (int) {
    return first;
  }
}
void destroy_suspended(pirn_function body) { pirn_destroy(suspended(body)); }

TEST(c_api_unwind_death, is_said_by_name) {
  EXPECT_DEATH(destroy_suspended(&answers_for_ever), "caught that exception, and yields");
  EXPECT_DEATH(destroy_suspended(&answers_uncaught), "which its body does not catch");
  EXPECT_DEATH(destroy_suspended(&yields_under_noexcept), "suspended under noexcept");
  EXPECT_DEATH(destroy_suspended(&yields_in_a_destructor), "in a destructor that is itself run by an exception");
}

// ---- the least stack --------------------------------------------------------------------------------------------

// Runs in a process whose first unwind this is.
[[noreturn]] void unwind_on_the_least_stack() {
  constexpr std::size_t size = PIRN_STACK_MIN;
  static unsigned char memory[2 * size];
  gone.clear();
  std::fill(std::begin(memory), std::end(memory), static_cast<unsigned char>(0xa5));
  pirn_stack* stack = nullptr;
  pirn_coroutine* co = nullptr;
  bool good = pirn_stack_create_in(&stack, memory + size, size) == 0 &&
              pirn_create(&co, stack, &holds_marks, nullptr) == 0 &&
              pirn_resume(co, nullptr, nullptr) == PIRN_YIELDED && pirn_destroy(co) == 0;
  good = good && std::all_of(memory, memory + size, [](unsigned char each) { return each == 0xa5; });
  std::_Exit(good && gone == std::vector{1, 2} ? 0 : 1);
}

TEST(c_api_unwind_death, the_least_stack_is_enough) {
  // A new process, except where tests/abi/cross.py runs it: an emulated program cannot start itself.
  if (std::getenv("PIRN_TEST_IS_CROSS") == nullptr) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  EXPECT_EXIT(unwind_on_the_least_stack(), testing::ExitedWithCode(0), "");
}

// ---- variables ------------------------------------------------------------------------------------------------------

const pirn::coroutine_local<int> number(5);

void* has_no_coroutine_local(pirn_coroutine* self, void* first) {
  EXPECT_EQ(number.find(), nullptr);
  EXPECT_THROW(static_cast<void>(number.get()), std::logic_error);
  pirn::coroutine<void()>([](auto&) { EXPECT_EQ(number.get()++, 5); }).resume();
  pirn_yield(self, first, &first);
  EXPECT_EQ(number.find(), nullptr);
  return first;
}

TEST(c_api_variables, a_coroutine_has_its_own_and_no_coroutine_local) {
  pirn::coroutine<void()> around([](auto& yield) {
    number.get() = 1;
    pirn_local mine = 0;
    EXPECT_EQ(pirn_local_create(&mine, nullptr), 0);
    EXPECT_EQ(pirn_local_set(mine, &mine), -EPERM);
    pirn_stack* stack = nullptr;
    pirn_coroutine* co = nullptr;
    EXPECT_EQ(pirn_stack_create(&stack, 65536), 0);
    EXPECT_EQ(pirn_create(&co, stack, &has_no_coroutine_local, nullptr), 0);
    EXPECT_EQ(pirn_resume(co, nullptr, nullptr), PIRN_YIELDED);
    EXPECT_EQ(number.get(), 1);
    yield();
    EXPECT_EQ(pirn_resume(co, nullptr, nullptr), PIRN_ENDED);
    EXPECT_EQ(number.get(), 1);
    EXPECT_EQ(pirn_destroy(co), 0);
    EXPECT_EQ(pirn_stack_destroy(stack), 0);
  });
  around.resume();
  around.resume();
  EXPECT_TRUE(around.done());
}

}  // namespace
