// Walks over the frames of a suspended context.

#include "pirn/context/expert/unwind.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "pirn/context/arch.hpp"
#include "pirn/context/expert/sanitizer.hpp"

namespace {

using pirn::arch::context;
using pirn::arch::word;
namespace arch = pirn::arch;

/// The functions of a walk, innermost first, and how it ended.
struct walk {
  std::vector<word> functions;
  std::size_t most = 100;
  bool saw_end = false;
  _Unwind_Reason_Code result = _URC_NO_REASON;

  static _Unwind_Reason_Code step(_Unwind_Context* frame, void* raw) {
    auto& self = *static_cast<walk*>(raw);
    if (_Unwind_GetIP(frame) == 0) {
      self.saw_end = true;
    } else if (self.functions.size() == self.most) {
      return _URC_NORMAL_STOP;
    } else {
      self.functions.push_back(_Unwind_GetRegionStart(frame));
    }
    return _URC_NO_REASON;
  }
  void over(const context& suspended) { result = arch::backtrace_suspended(&suspended, &step, this); }
};

template <class Function>
word address(Function* function) {
  return reinterpret_cast<word>(function);
}

/// A context suspended three calls deep.
struct suspended_context {
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(size);
  context here, there;
  pirn::sanitizer_state inside, outside;
  static constexpr std::size_t size = std::size_t{64} * 1024;

  suspended_context();
  ~suspended_context() {
    inside.destroy();
    outside.destroy();
  }
  suspended_context(const suspended_context&) = delete;
  suspended_context& operator=(const suspended_context&) = delete;
};

PIRN_NOINLINE void inner(suspended_context& shared) {
  word one = 0, two = 0;
  shared.inside.leave(shared.outside);
  arch::switch_to(shared.there, shared.here, one, two);
  shared.inside.arrive();
}
PIRN_NOINLINE void middle(suspended_context& shared) {
  inner(shared);
  asm volatile("");  // not a tail call
}
PIRN_NOINLINE void entry(word first, word) {
  auto& shared = *reinterpret_cast<suspended_context*>(first);
  shared.inside.arrive();
  middle(shared);
  asm volatile("");
}

suspended_context::suspended_context() {
  outside.adopt_thread();
  inside.create(stack.get(), size, "suspended");
  there = arch::prepare(stack.get() + size, &entry);
  word first = reinterpret_cast<word>(this), second = 0;
  outside.leave(inside);
  arch::switch_to(here, there, first, second);
  outside.arrive();
}

void expect_frames(const walk& seen) {
  ASSERT_GE(seen.functions.size(), 4U);
  const std::size_t last = seen.functions.size() - 1;
  EXPECT_EQ(seen.functions[last], address(&arch::root_frame));
  EXPECT_EQ(seen.functions[last - 1], address(&entry));
  EXPECT_EQ(seen.functions[last - 2], address(&middle));
  EXPECT_EQ(seen.functions[last - 3], address(&inner));
  EXPECT_TRUE(seen.saw_end);
  EXPECT_EQ(seen.result, _URC_END_OF_STACK);
}

TEST(unwind, shows_the_frames_of_a_suspended_context) {
  const suspended_context suspended;
  walk seen;
  seen.over(suspended.there);
  expect_frames(seen);
  EXPECT_EQ(seen.functions.size(), 4U);
}

TEST(unwind, may_be_repeated) {
  const suspended_context suspended;
  for (int i = 0; i < 10; ++i) {
    walk seen;
    seen.over(suspended.there);
    expect_frames(seen);
  }
}

TEST(unwind, another_thread_may_look) {
  const suspended_context suspended;
  walk seen;
  std::thread([&] { seen.over(suspended.there); }).join();
  expect_frames(seen);
}

TEST(unwind, fresh_context_shows_its_start_frame) {
  const auto stack = std::make_unique<char[]>(suspended_context::size);
  const context fresh = arch::prepare(stack.get() + suspended_context::size, &entry);
  walk seen;
  seen.over(fresh);
  ASSERT_EQ(seen.functions.size(), 1U);
  EXPECT_EQ(seen.functions[0], address(&arch::start_frame));
  EXPECT_TRUE(seen.saw_end);
}

TEST(unwind, step_may_stop_the_walk) {
  const suspended_context suspended;
  walk seen;
  seen.most = 2;
  seen.over(suspended.there);
  EXPECT_EQ(seen.functions.size(), 2U);
  EXPECT_FALSE(seen.saw_end);
  EXPECT_NE(seen.result, _URC_END_OF_STACK);
}

// The registers that the walk borrows have their caller's values again afterwards.
TEST(unwind, leaves_the_caller_intact) {
  const suspended_context suspended;
  word a = 1, b = 2, c = 3, d = 4, e = 5;
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
  walk seen;
  seen.over(suspended.there);
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
  EXPECT_EQ(a + b + c + d + e, 15U);
}

}  // namespace
