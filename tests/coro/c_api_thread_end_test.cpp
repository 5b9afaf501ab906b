// pthread_exit and pthread_cancel in bodies of the C API: the destructors of all stacks that the thread is on run.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include "pirn/context/continuation.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/pirn.h"

namespace {

enum class by : std::uint8_t { exit, cancel, cancel_anywhere };

by how = by::exit;
std::atomic<int> bodies = 0;
std::atomic<int> callers = 0;
std::atomic<bool> there = false;
std::atomic<std::uint64_t> turns = 0;
int result_of_thread = 0;

struct counts {
  std::atomic<int>& what;
  explicit counts(std::atomic<int>& which) : what(which) {}
  ~counts() { ++what; }
};

/// Ends the thread, or waits for its cancellation.
void end_thread() {
  if (how == by::exit) {
    pthread_exit(&result_of_thread);
  }
  if (how == by::cancel_anywhere) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  }
  there = true;
  for (;;) {
    if (how == by::cancel) {
#if defined(__powerpc64__)
      pthread_testcancel();  // the emulator shows no unwinder the frame that a signal interrupted, in any thread
#else
      usleep(1000);
#endif
    } else {
      ++turns;
    }
  }
}

/// Releases a coroutine, which has ended.
struct owner {
  pirn_coroutine* co = nullptr;
  explicit owner(pirn_function body, void* user = nullptr) { EXPECT_EQ(pirn_create(&co, nullptr, body, user), 0); }
  ~owner() {
    EXPECT_EQ(pirn_done(co), 1);
    EXPECT_EQ(pirn_resume(co, nullptr, nullptr), -ESRCH);
    EXPECT_EQ(pirn_self(), outer);
    EXPECT_EQ(pirn_destroy(co), 0);
  }
  owner(const owner&) = delete;
  owner& operator=(const owner&) = delete;
  pirn_coroutine* outer = pirn_self();
};

/// A thread runs `f`, and ends in it.
void expect_all_unwound(void* (*f)(void*), int bodies_expected, by manner) {
  how = manner;
  bodies = 0;
  callers = 0;
  there = false;
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, f, nullptr), 0);
  if (how != by::exit) {
    while (!there) {
      usleep(100);
    }
    pthread_cancel(thread);
  }
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, how == by::exit ? &result_of_thread : PTHREAD_CANCELED);
  EXPECT_EQ(bodies, bodies_expected);
  EXPECT_EQ(callers, 1);
}

class c_api_thread_end : public testing::Test {
 protected:
  void SetUp() override {
#if defined(PIRN_TSAN)
    GTEST_SKIP() << "ThreadSanitizer ends a process in which pthread_exit is called on another stack";
#endif
  }
  static void expect_each_way(void* (*f)(void*), int bodies_expected) {
    for (const by manner : {by::exit, by::cancel}) {
      SCOPED_TRACE(manner == by::exit ? "pthread_exit" : "pthread_cancel");
      expect_all_unwound(f, bodies_expected, manner);
    }
  }
};

void* ends_thread(pirn_coroutine* /*self*/, void* first) {
  const counts its(bodies);
  end_thread();
  return first;
}

template <int levels>
void* ends_thread_below(pirn_coroutine* self, void* first) {
  const counts its(bodies);
  EXPECT_EQ(pirn_yield(self, first, nullptr), 0);
  if constexpr (levels == 1) {
    end_thread();
  } else {
    const owner inner(&ends_thread_below<levels - 1>);
    EXPECT_EQ(pirn_resume(inner.co, nullptr, nullptr), PIRN_YIELDED);
    pirn_resume(inner.co, nullptr, nullptr);
  }
  return first;
}

template <int levels>
void* runs(void* /*unused*/) {
  const counts mine(callers);
  const owner co(&ends_thread_below<levels>);
  EXPECT_EQ(pirn_resume(co.co, nullptr, nullptr), PIRN_YIELDED);
  pirn_resume(co.co, nullptr, nullptr);
  return nullptr;
}

TEST_F(c_api_thread_end, one_level_deep) { expect_each_way(&runs<1>, 1); }
TEST_F(c_api_thread_end, two_levels_deep) { expect_each_way(&runs<2>, 2); }
TEST_F(c_api_thread_end, three_levels_deep) { expect_each_way(&runs<3>, 3); }

// Without -fnon-call-exceptions destructors do not run in code that calls nothing, so the frame that computes has none.
void* computes(pirn_coroutine* /*self*/, void* /*first*/) {
  end_thread();
  return nullptr;
}

TEST_F(c_api_thread_end, where_the_body_computes) {
#if defined(__powerpc64__)
  GTEST_SKIP() << "the emulator shows no unwinder what a signal has interrupted";
#endif
  expect_all_unwound(
      [](void*) -> void* {
        const counts mine(callers);
        const owner outer([](pirn_coroutine*, void* first) {
          const counts its(bodies);
          const owner inner(&computes);
          pirn_resume(inner.co, nullptr, nullptr);
          return first;
        });
        pirn_resume(outer.co, nullptr, nullptr);
        return nullptr;
      },
      1, by::cancel_anywhere);
}

TEST_F(c_api_thread_end, through_bodies_of_other_kinds) {
  expect_each_way(
      [](void*) -> void* {
        const counts mine(callers);
        const owner outer([](pirn_coroutine*, void* first) {
          const counts its(bodies);
          pirn::coroutine<void()> between([](auto&) {
            const counts own(bodies);
            const owner inner([](pirn_coroutine*, void* last) {
              const counts innermost(bodies);
              for (const int each : pirn::generator<int>([](auto& yield) {
                     const counts of_generator(bodies);
                     yield(1);
                     end_thread();
                   })) {
                EXPECT_EQ(each, 1);
              }
              return last;
            });
            pirn_resume(inner.co, nullptr, nullptr);
          });
          between.resume();
          return first;
        });
        pirn_resume(outer.co, nullptr, nullptr);
        return nullptr;
      },
      4);
}

TEST_F(c_api_thread_end, in_catch_blocks_of_body_and_resumer) {
  expect_each_way(
      [](void*) -> void* {
        const counts mine(callers);
        try {
          throw counts(bodies);
        } catch (const counts&) {
          const owner co([](pirn_coroutine*, void* first) {
            try {
              throw counts(bodies);
            } catch (const counts&) {
              EXPECT_NE(std::current_exception(), nullptr);
              end_thread();
            }
            return first;
          });
          pirn_resume(co.co, nullptr, nullptr);
        }
        return nullptr;
      },
      2);
}

TEST_F(c_api_thread_end, others_that_are_suspended_are_destroyed) {
  expect_each_way(
      [](void*) -> void* {
        const counts mine(callers);
        struct destroys {
          pirn_coroutine* co = nullptr;
          ~destroys() { EXPECT_EQ(pirn_destroy(co), 0); }
        } early;
        EXPECT_EQ(pirn_create(
                      &early.co, nullptr,
                      [](pirn_coroutine* self, void* first) {
                        const counts its(bodies);
                        pirn_yield(self, first, nullptr);
                        return first;
                      },
                      nullptr),
                  0);
        EXPECT_EQ(pirn_resume(early.co, nullptr, nullptr), PIRN_YIELDED);
        const owner co(&ends_thread);
        pirn_resume(co.co, nullptr, nullptr);
        return nullptr;
      },
      2);
}

pirn_coroutine* left = nullptr;
void* out = &result_of_thread;

TEST_F(c_api_thread_end, another_thread_uses_it_and_its_stack_again) {
  pirn_stack* stack = nullptr;
  ASSERT_EQ(pirn_stack_create(&stack, 0), 0);
  for (const by manner : {by::exit, by::cancel}) {
    ASSERT_EQ(pirn_create(&left, stack, &ends_thread, nullptr), 0);
    expect_all_unwound(
        [](void*) -> void* {
          const counts mine(callers);
          pirn_resume(left, nullptr, &out);
          return nullptr;
        },
        1, manner);
    EXPECT_EQ(out, &result_of_thread);  // it produced no result
    EXPECT_EQ(pirn_done(left), 1);
    EXPECT_EQ(pirn_resume(left, nullptr, nullptr), -ESRCH);
    const pirn_function returns = [](pirn_coroutine*, void* first) { return first; };
    EXPECT_EQ(pirn_reset(left, returns, nullptr), 0);
    void* given = nullptr;
    EXPECT_EQ(pirn_resume(left, &left, &given), PIRN_ENDED);
    EXPECT_EQ(given, &left);
    EXPECT_EQ(pirn_destroy(left), 0);
  }
  EXPECT_EQ(pirn_stack_destroy(stack), 0);
}

#if !defined(__i386__)  // clang at -O0 has too few registers there for an exchange
// A continuation takes a body to another thread, without informing the body.
void end_thread_in_a_body_that_a_continuation_has_moved() {
  using k = pirn::continuation<int>;
  how = by::exit;
  auto [other, got] = k::start(
      pirn::default_stack_pool(),
      [](k& back, int value) {
        const owner co(
            [](pirn_coroutine* self, void* first) {
              static_cast<k*>(pirn_user(self))->exchange(2);
              return ends_thread(self, first);
            },
            &back);
        pirn_resume(co.co, nullptr, nullptr);
        return std::move(back).finish(value);
      },
      1);
  std::thread([&] { other.exchange(3); }).join();
}

class c_api_thread_end_death : public c_api_thread_end {};

TEST_F(c_api_thread_end_death, is_said_by_name) {
  if (std::getenv("PIRN_TEST_IS_CROSS") == nullptr) {  // an emulated program cannot start itself
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  EXPECT_DEATH(end_thread_in_a_body_that_a_continuation_has_moved(),
               "pirn: the body of a pirn_coroutine was left by pthread_exit .* counts as running");
}
#endif

}  // namespace
