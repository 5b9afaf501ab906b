#include <gtest/gtest.h>

#include <cerrno>
#include <stdexcept>
#include <thread>
#include <vector>

#include "pirn/pirn.h"

// What a program of C++ sees of the C API when it destroys a suspended coroutine.
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

}  // namespace
