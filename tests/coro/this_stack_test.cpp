// this_stack: the bounds of the running stack, on a thread, in a body, and on unregistered memory.

#include "pirn/stack/this_stack.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/generator.hpp"

namespace {

void expect_here(const pirn::stack& bounds) { EXPECT_TRUE(bounds.contains(__builtin_frame_address(0))); }

TEST(this_stack, of_a_thread) {
  expect_here(pirn::this_stack::bounds());
  const void* const mine = pirn::this_stack::bounds().top();
  std::thread([&] {
    expect_here(pirn::this_stack::bounds());
    EXPECT_NE(pirn::this_stack::bounds().top(), mine);
  }).join();
}

TEST(this_stack, of_a_body) {
  const pirn::stack callers = pirn::this_stack::bounds();
  pirn::guarded_pool pool;
  const std::size_t size = 256 << 10;
  {
    pirn::coroutine<void()> c(pool, size, [&](auto& yield) {
      const pirn::stack mine = pirn::this_stack::bounds();
      expect_here(mine);
      EXPECT_GE(mine.size(), size);
      EXPECT_LT(mine.size(), 2 * size);
      EXPECT_FALSE(mine.contains(callers.limit()));
      yield();
      EXPECT_EQ(pirn::this_stack::bounds().top(), mine.top());
    });
    c.resume();
    EXPECT_EQ(pirn::this_stack::bounds().top(), callers.top());
    std::thread([&] { c.resume(); }).join();
  }
  pirn::generator<int> g = [](auto& yield) {
    expect_here(pirn::this_stack::bounds());
    yield(1);
  };
  for (const int each : g) {
    EXPECT_EQ(each, 1);
  }
}

TEST(this_stack, none_on_memory_that_nobody_told_of) {
  alignas(16) static char memory[65536];
  pirn::coroutine<bool()> c(pirn::stack(memory, memory + sizeof memory),
                            [](auto&) { return static_cast<bool>(pirn::this_stack::bounds()); });
  EXPECT_FALSE(c.resume());
}

}  // namespace
