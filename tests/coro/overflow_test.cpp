// Overrunning the stack of a coroutine or generator in a program without a runtime.
#include <gtest/gtest.h>
#include <pthread.h>

#include "pirn/context/continuation.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"
#include "pirn/stack/expert/overflow.hpp"

namespace {

#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
#define OVERFLOW(statement, kind) GTEST_SKIP() << "the sanitizer reports it first"
#else
#define OVERFLOW(statement, kind) \
  EXPECT_DEATH(statement,         \
               "pirn: stack overflow in (.|\n)*bytes at(.|\n)*it is the stack of " kind ", which begins in #[0-9]")

using generator = pirn::generator<int>;

/// Each call yields from one level further down.
[[gnu::noinline]] void count(generator::yield& yield, int depth, int most) {
  volatile char frame[64] = {};
  yield(depth);
  if (depth < most) {
    count(yield, depth + 1, most);
  }
  static_cast<void>(frame[0]);  // prevents a tail call
}

int sum_of(int most) {
  int sum = 0;
  for (const int each : generator([most](generator::yield& yield) { count(yield, 0, most); })) {
    sum += each;
  }
  return sum;
}

[[gnu::noinline]] int dig(int depth, const volatile int& most) {
  volatile char frame[64] = {};
  return depth < most ? dig(depth + 1, most) + frame[0] : depth;
}
#endif

TEST(overflow_death, of_a_generator) { OVERFLOW(static_cast<void>(sum_of(30'000)), "a generator"); }

TEST(overflow_death, of_a_continuation) {
  OVERFLOW(
      {
        pirn::guarded_pool pool;
        const pirn::overflow_handler handler;
        const pirn::overflow_thread alternate;
        pirn::continuation<int> k(pool, [](pirn::continuation<int>& back, int n) -> pirn::continuation<int>::finished {
          for (;;) {
            const volatile int most = 1'000'000;
            n = back.exchange(dig(n, most));
          }
        });
        k.exchange(0);
      },
      "a continuation");
}

TEST(overflow_death, of_a_coroutine_on_another_thread) {
  OVERFLOW(
      {
        pthread_t thread;
        pthread_create(
            &thread, nullptr,
            [](void*) -> void* {
              pirn::coroutine<int()> c([](auto& yield) {
                yield(0);
                const volatile int most = 1'000'000;
                return dig(0, most);
              });
              c.resume();
              c.resume();
              return nullptr;
            },
            nullptr);
        pthread_join(thread, nullptr);
      },
      "a coroutine");
}

}  // namespace
