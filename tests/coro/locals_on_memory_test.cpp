// coroutine_local::get() in a process that has coroutines on memory of the program: by a walk of the stack.
#include <gtest/gtest.h>

#include <stdexcept>

#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"
#include "pirn/stack/expert/copy_stack.hpp"
#include "pirn/stack/stack.hpp"

namespace {

const pirn::coroutine_local<int> number(5);

[[gnu::noinline]] int& deep_number(int depth) { return depth == 0 ? number.get() : deep_number(depth - 1); }

TEST(locals_on_memory_test, a_coroutine_in_a_frame_does_not_get_the_values_of_the_coroutine_around_it) {
  pirn::coroutine<void()> outer([](auto& yield) {
    number.get() = 1;
    alignas(16) char memory[16384];
    pirn::coroutine<void()> inner(pirn::stack(memory, memory + sizeof memory), [](auto& yields) {
      EXPECT_EQ(number.find(), nullptr);
      EXPECT_THROW(static_cast<void>(number.get()), std::logic_error);
      EXPECT_EQ(number.get(yields), 5);
    });
    inner.resume();
    EXPECT_EQ(deep_number(2), 1);  // from now on by a walk
    yield();
    EXPECT_EQ(deep_number(2), 1);
  });
  outer.resume();
  outer.resume();
  EXPECT_TRUE(outer.done());
}

TEST(locals_on_memory_test, a_copy_stack_on_memory_of_the_program_is_found_by_a_walk) {
  alignas(16) static char memory[32768];
  pirn::copy_stack shared(pirn::stack(memory, memory + sizeof memory));
  pirn::copied_coroutine<void()> one(shared, [](auto& yield) {
    number.get() = 8;
    yield();
    EXPECT_EQ(deep_number(2), 8);
    EXPECT_EQ(&number.get(), &number.get(yield));
  });
  pirn::copied_coroutine<void()> two(shared, [](auto&) { EXPECT_EQ(number.find(), nullptr); });
  one.resume();
  two.resume();
  one.resume();
  EXPECT_TRUE(one.done());
}

}  // namespace
