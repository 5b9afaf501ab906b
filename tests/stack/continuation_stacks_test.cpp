// Continuations on the stacks of this layer. The context layer, to which continuations belong, has no stacks.

#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "pirn/context/continuation.hpp"
#include "pirn/stack/expert/frame_buffer.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"
#include "pirn/stack/stack.hpp"

namespace {

using pirn::continuation;

continuation<int>::finished doubles(continuation<int> back, int x) {
  for (;;) {
    x = back.exchange(2 * x);
  }
}

TEST(continuation_stacks, frame_buffer) {
  pirn::frame_buffer<32768> buffer;  // room for an unwinder that saves many vector registers, as on PowerPC
  {
    continuation<int> k(buffer, doubles);
    EXPECT_EQ(k.exchange(1), 2);
    EXPECT_EQ(k.exchange(7), 14);
    EXPECT_THROW(continuation<int>(buffer, doubles), std::system_error);  // it is in use
  }
  continuation<int> again(buffer, doubles);
  EXPECT_EQ(again.exchange(3), 6);
}

TEST(continuation_stacks, guarded_pool) {
  pirn::guarded_pool pool;
  {
    continuation<int> k(pool, doubles);
    continuation<int> large(pool, doubles, std::size_t{1} << 20);
    EXPECT_EQ(k.exchange(1), 2);
    EXPECT_EQ(large.exchange(2), 4);
    EXPECT_EQ(pool.statistics().in_use, 2U);
  }
  EXPECT_EQ(pool.statistics().in_use, 0U);
  auto [k, x] = continuation<int>::start(pool, doubles, 5);
  EXPECT_EQ(x, 10);
  EXPECT_EQ(pool.statistics().in_use, 1U);
}

TEST(continuation_stacks, no_stack_says_why) {
  pirn::guarded_pool pool({.max_stacks = 1});
  const continuation<int> k(pool, doubles);
  try {
    const continuation<int> second(pool, doubles);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), make_error_code(pirn::stack_error::pool_limit));
  }
}

TEST(continuation_stacks, memory_of_the_callers) {
  alignas(16) std::array<char, 16384> bytes;
  const pirn::stack memory(bytes.data(), bytes.data() + bytes.size());
  continuation<int> k(memory, doubles);
  EXPECT_EQ(k.exchange(21), 42);
}

}  // namespace
