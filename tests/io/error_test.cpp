// I/O errors: their conditions and texts.

#include "pirn/io/error.hpp"

#include <gtest/gtest.h>

namespace {

using pirn::io_error;

TEST(io_error, compares_with_the_portable_conditions) {
  const std::error_code late = io_error::timed_out;
  EXPECT_EQ(late, std::errc::timed_out);
  EXPECT_EQ(std::error_code(io_error::stopped), std::errc::operation_canceled);
  EXPECT_EQ(std::error_code(io_error::stack_overflow), std::errc::bad_address);
  EXPECT_NE(late, std::errc::operation_canceled);
  EXPECT_STREQ(late.category().name(), "pirn.io");
}

TEST(io_error, is_the_wait_error_of_the_same_name) {
  EXPECT_EQ(make_error_code(pirn::wait_error::timed_out), make_error_code(io_error::timed_out));
  EXPECT_EQ(make_error_code(pirn::wait_error::stopped), make_error_code(io_error::stopped));
  EXPECT_EQ(make_error_code(pirn::wait_error::closed), make_error_code(io_error::closed));
}

TEST(io_error, each_has_a_text_of_its_own) {
  std::string before;
  for (int value = 1; value <= static_cast<int>(io_error::shared); ++value) {
    const std::string text = pirn::io_category().message(value);
    EXPECT_NE(text, "unknown error");
    EXPECT_NE(text, before);
    before = text;
  }
}

}  // namespace
