// frame_buffer: a stack in the frame of a function.

#include "pirn/stack/expert/frame_buffer.hpp"

#include <gtest/gtest.h>

#include "stack/support.hpp"

namespace {

using pirn::frame_buffer;
using pirn::stack_error;

TEST(frame_buffer, is_a_stack_in_this_frame) {
  frame_buffer<32768> buffer;
  const pirn::stack_result got = buffer.allocate(32768);
  ASSERT_TRUE(got);
  EXPECT_EQ(got.value.size(), 32768u);
  EXPECT_GE(static_cast<void*>(got.value.limit()), static_cast<void*>(&buffer));
  EXPECT_LE(static_cast<void*>(got.value.top()), static_cast<void*>(&buffer + 1));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(got.value.top()) % 16, 0u);
  const void* seen = nullptr;
  stack_test::run_on(got.value, [&] { seen = __builtin_frame_address(0); });
  EXPECT_TRUE(got.value.contains(seen));
  buffer.deallocate(got.value);
}

TEST(frame_buffer, holds_one_stack_at_a_time) {
  frame_buffer<1024> buffer;
  EXPECT_EQ(buffer.allocate(1025).error, stack_error::invalid_size);
  EXPECT_EQ(buffer.allocate(0).error, stack_error::invalid_size);
  const pirn::stack_result got = buffer.allocate(1);
  ASSERT_TRUE(got);
  EXPECT_EQ(buffer.allocate(1).error, stack_error::pool_limit);
  buffer.deallocate(got.value);
  EXPECT_TRUE(buffer.allocate(1024));
}

}  // namespace
