// Running off a stack that has no guard: told by name, where what lies below lets the program come so far.
#include <gtest/gtest.h>

#include <cstring>

#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/generator.hpp"

namespace {

#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
#define ENDS(message, ...) GTEST_SKIP() << "frames are larger, and the sanitizer sees it first"
#else
#define ENDS(message, ...) EXPECT_DEATH(([&] __VA_ARGS__)(), message)

/// Writes so many bytes of its frame, and calls `then` above them.
template <class F>
[[gnu::noinline]] void go_down(std::size_t bytes, F&& then) {
  auto* const frame = static_cast<char*>(__builtin_alloca(bytes));
  std::memset(frame, 1, bytes);
  asm volatile("" : : "r"(frame) : "memory");
  then();
}
#endif

TEST(stack_end_death, a_generator_that_yields_further_down) {
  ENDS("pirn: stack overflow in a generator: it has [0-9]+ bytes without a guard, and needed at least 1[0-9]{4}", {
    struct {
      char below[65536];
      pirn::generator<int, pirn::frame<8192>> g = [](auto& yield) {
        yield(1);
        go_down(16384, [&] { yield(2); });
      };
    } frame;
    for (const int each : frame.g) {
      EXPECT_EQ(each, 1);
    }
  });
}

TEST(stack_end_death, a_generator_that_has_come_back) {
  ENDS("pirn: stack overflow in a generator", {
    struct {
      char below[65536];
      pirn::generator<int, pirn::frame<8192>> g = [](auto& yield) {
        go_down(16384, [] {});
        yield(1);
        yield(2);
      };
    } frame;
    for (const int each : frame.g) {
      EXPECT_EQ(each, 1);
    }
  });
}

TEST(stack_end_death, memory_of_the_callers) {
  alignas(16) static char memory[65536];
  const pirn::stack upper(memory + 32768, memory + sizeof memory);
  ENDS("pirn: stack overflow in a generator: it has 32768 bytes", {
    pirn::generator<int> g(upper, [](auto& yield) {
      go_down(40000, [] {});
      yield(1);
    });
    for (const int each : g) {
      EXPECT_EQ(each, 1);
    }
    g = pirn::generator<int>([](auto&) {});
  });
  ENDS("pirn: stack overflow in a coroutine: it has 32768 bytes", {
    pirn::coroutine<void()> c(upper, [](auto&) { go_down(40000, [] {}); });
    c.resume();
    c = {};
  });
}

TEST(stack_end_death, a_coroutine_in_a_frame) {
  ENDS("pirn: stack overflow in a coroutine: it has 8192 bytes", {
    struct {
      char below[65536];
      pirn::frame_buffer<8192> buffer;
    } frame;
    pirn::coroutine<void()> c(frame.buffer, [](auto&) { go_down(16384, [] {}); });
    c.resume();
    c = {};
  });
}

TEST(stack_end, nothing_is_said_of_what_fits) {
  int sum = 0;
  pirn::generator<int, pirn::frame<16384>> g = [](auto& yield) {
    for (int i = 0; i < 3; ++i) {
      yield(i);
    }
  };
  for (const int each : g) {
    sum += each;
  }
  EXPECT_EQ(sum, 3);
  pirn::generator<int, pirn::frame<16384>> delegating = [](pirn::generator<int>::yield& yield) {
    yield(pirn::elements_of(pirn::generator<int>([](auto& deeper) { deeper(4); })));
  };
  for (const int each : delegating) {
    sum += each;
  }
  EXPECT_EQ(sum, 7);
}

}  // namespace
