// pthread_exit and pthread_cancel in a body: the destructors of all stacks that the thread is on run.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "pirn/context/continuation.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"
#include "pirn/coro/expert/stack_swap.hpp"
#include "pirn/coro/generator.hpp"

namespace {

std::atomic<int> bodies = 0;
std::atomic<int> callers = 0;
std::atomic<bool> there = false;
bool cancelled = false;
struct counts {
  std::atomic<int>& what;
  explicit counts(std::atomic<int>& which) : what(which) {}
  ~counts() { ++what; }
};

int result_of_thread = 0;

void end_thread() {
  if (!cancelled) {
    pthread_exit(&result_of_thread);
  }
  there = true;
  for (;;) {
#if defined(__powerpc64__)
    pthread_testcancel();  // the emulator shows no unwinder the frame that a signal interrupted, in any thread
#else
    usleep(1000);
#endif
  }
}

/// A thread runs `f`, and ends in it.
void expect_both_unwound(void* (*f)(void*), int bodies_expected = 1) {
#if defined(PIRN_TSAN)
  GTEST_SKIP() << "ThreadSanitizer ends a process in which pthread_exit is called on another stack";
#endif
  for (const bool how : {false, true}) {
    SCOPED_TRACE(how ? "pthread_cancel" : "pthread_exit");
    cancelled = how;
    bodies = 0;
    callers = 0;
    there = false;
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, nullptr, f, nullptr), 0);
    if (cancelled) {
      while (!there) {
        usleep(100);
      }
      pthread_cancel(thread);
    }
    void* result = nullptr;
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, cancelled ? PTHREAD_CANCELED : &result_of_thread);
    EXPECT_EQ(bodies, bodies_expected);
    EXPECT_EQ(callers, 1);
  }
}

TEST(thread_end, in_a_coroutine) {
  expect_both_unwound([](void*) -> void* {
    const counts mine(callers);
    pirn::coroutine<void()> c([](auto& yield) {
      const counts its(bodies);
      yield();
      end_thread();
    });
    c.resume();
    c.resume();
    return nullptr;
  });
}

TEST(thread_end, in_a_generator) {
  expect_both_unwound([](void*) -> void* {
    const counts mine(callers);
    pirn::generator<int> g = [](auto& yield) {
      const counts its(bodies);
      yield(1);
      end_thread();
    };
    for (const int each : g) {
      EXPECT_EQ(each, 1);
    }
    return nullptr;
  });
}

TEST(thread_end, in_a_generator_to_which_another_delegates) {
  expect_both_unwound(
      [](void*) -> void* {
        const counts mine(callers);
        pirn::generator<int, pirn::frame<32768>> g = [](pirn::generator<int>::yield& yield) {
          const counts outer(bodies);
          yield(pirn::elements_of(pirn::generator<int>([](auto& deeper) {
            const counts inner(bodies);
            deeper(1);
            end_thread();
          })));
        };
        for (const int each : g) {
          EXPECT_EQ(each, 1);
        }
        return nullptr;
      },
      2);
}

TEST(thread_end, in_a_copied_coroutine) {
  expect_both_unwound([](void*) -> void* {
    const counts mine(callers);
    pirn::copy_stack on(65536);
    pirn::copied_coroutine<void()> c(on, [](auto& yield) {
      const counts its(bodies);
      yield();
      end_thread();
    });
    c.resume();
    c.resume();
    return nullptr;
  });
}

TEST(thread_end, in_a_continuation) {
  expect_both_unwound([](void*) -> void* {
    using k = pirn::continuation<int>;
    const counts mine(callers);
    auto [other, got] = k::start(
        pirn::default_stack_pool(),
        [](k& back, int value) {
          const counts its(bodies);
          back.exchange(value);
          end_thread();
          return std::move(back).finish(0);
        },
        1);
    EXPECT_EQ(got, 1);
    other.exchange(2);
    return nullptr;
  });
}

TEST(thread_end, in_a_catch_block_and_behind_an_early_end) {
  expect_both_unwound(
      [](void*) -> void* {
        const counts mine(callers);
        pirn::coroutine<void()> suspended([](auto& yield) {
          const counts its(bodies);
          yield();
        });
        suspended.resume();
        pirn::coroutine<void()> c([](auto&) {
          const counts its(bodies);
          try {
            throw 1;
          } catch (int) {
            end_thread();
          }
        });
        c.resume();
        return nullptr;
      },
      2);
}

}  // namespace
