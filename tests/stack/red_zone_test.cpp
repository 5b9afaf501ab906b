// The locals of a leaf function lie below sp. An image of a context that an inlined switch suspends therefore needs
// more than the bytes from sp on, and that of a copy_stack does not. Built at several levels: see CMakeLists.txt.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "pirn/context/arch.hpp"
#include "pirn/stack/expert/copy_stack.hpp"
#include "support.hpp"

namespace {

using pirn::arch::word;

#if defined(__clang__)
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif

pirn::arch::context suspended, resumer;
alignas(16) char memory[64 * 1024];
word result;

KEEP word leaf_that_switches(word from) {
  volatile word locals[8];
  for (word i = 0; i < 8; ++i) {
    locals[i] = from + i;
  }
  word none[2] = {};
  pirn::arch::switch_to(suspended, resumer, none[0], none[1]);
  word sum = 0;
  for (word i = 0; i < 8; ++i) {
    sum += locals[i];
  }
  return sum;
}
void switching(word from, word) {
  result = leaf_that_switches(from);
  word none[2] = {};
  pirn::arch::switch_to(suspended, resumer, none[0], none[1]);
}

/// Exits with 0 if the leaf's sum is right although the whole stack, except the bytes from `below` under sp on, was
/// overwritten while it was suspended.
[[noreturn]] void cut_image(std::size_t below) {
  char* const top = memory + sizeof memory;
  suspended = pirn::arch::prepare(top, &switching);
  word from = 100, none = 0;
  pirn::arch::switch_to(resumer, suspended, from, none);
  char* const begin = static_cast<char*>(suspended.sp) - below;
  const std::vector<char> image(begin, top);
  std::memset(memory, 0xa5, sizeof memory);
  std::memcpy(begin, image.data(), image.size());
  pirn::arch::switch_to(resumer, suspended, from, none);
  _exit(result == 828 ? 0 : 1);
}
bool right_with(std::size_t below) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    cut_image(below);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(red_zone_test, an_inlined_switch_in_a_leaf_loses_what_lies_below_sp) {
  if (stack_test::sanitized) {
    GTEST_SKIP() << "an instrumented function is no leaf";
  }
#if defined(__x86_64__) && defined(__OPTIMIZE__)
  EXPECT_FALSE(right_with(0));
#endif
  EXPECT_TRUE(right_with(pirn::arch::red_zone));
}

KEEP word leaf_that_suspends(pirn::copy_stack& on, word from) {
  volatile word locals[8];
  for (word i = 0; i < 8; ++i) {
    locals[i] = from + i;
  }
  word words[pirn::arch::value_words] = {};
  on.suspend(words);
  word sum = 0;
  for (word i = 0; i < 8; ++i) {
    sum += locals[i];
  }
  return sum;
}
PIRN_NONE void suspending(void* pc, void* sp, void* fp, word first, word from, word, word) {
  auto& on = *reinterpret_cast<pirn::copy_stack*>(first);
  on.entered(pc, sp, fp);
  const word sum = leaf_that_suspends(on, from);
  on.finish({sum, 0, 0, 0});
}

TEST(red_zone_test, a_copy_stack_keeps_it) {
  pirn::copy_stack on(sizeof memory);
  pirn::copied_context one(on, &suspending), other(on, &suspending);
  word words[pirn::arch::value_words] = {reinterpret_cast<word>(&on), 100, 0, 0};
  ASSERT_EQ(one.bring_in(), pirn::stack_error::none);
  ASSERT_TRUE(one.run(words));
  ASSERT_EQ(other.bring_in(), pirn::stack_error::none);
  std::memset(on.memory().limit(), 0xa5, on.memory().size() - pirn::arch::root_size - 64);
  words[0] = reinterpret_cast<word>(&on), words[1] = 1;
  ASSERT_TRUE(other.run(words));
  ASSERT_EQ(one.bring_in(), pirn::stack_error::none);
  ASSERT_FALSE(one.run(words));
  EXPECT_EQ(words[0], 828U);
}

}  // namespace
