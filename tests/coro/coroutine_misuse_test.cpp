// Misuse of coroutines: each mistake throws std::logic_error or ends the process, with a message that names it.

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "coro/misuse_support.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/stack/expert/frame_buffer.hpp"

namespace {

using pirn::coroutine;
using pirn_test::logic_error_of;
using pirn_test::says;

TEST(coroutine_misuse_test, resumed_after_its_end) {
  coroutine<void()> one([](auto&) {});
  one.resume();
  EXPECT_TRUE(says(logic_error_of([&] { one.resume(); }), "resumed after its end"));
  coroutine<void()> thrown([](auto&) { throw 1; });
  EXPECT_THROW(thrown.resume(), int);
  EXPECT_TRUE(says(logic_error_of([&] { thrown.resume(); }), "resumed after its end"));
}

TEST(coroutine_misuse_test, resumed_though_empty) {
  coroutine<void()> none;
  EXPECT_TRUE(says(logic_error_of([&] { none.resume(); }), "empty"));
  coroutine<void()> one([](auto&) {});
  const coroutine<void()> other(std::move(one));
  // NOLINTNEXTLINE(bugprone-use-after-move): that is what is tested
  EXPECT_TRUE(says(logic_error_of([&] { one.resume(); }), "empty"));
  EXPECT_TRUE(says(logic_error_of([&] { none.reset([](auto&) {}); }), "no stack"));
}

TEST(coroutine_misuse_test, resumed_while_it_is_running) {
  coroutine<int()>* self = nullptr;
  std::string message;
  coroutine<int()> one([&](auto& yield) {
    message = logic_error_of([&] { self->resume(); });
    yield(1);
    message += logic_error_of([&] { self->resume(); });
    message += logic_error_of([&] { self->reset(); });
    return 2;
  });
  self = &one;
  EXPECT_EQ(one.resume(), 1);
  EXPECT_TRUE(says(message, "resumed while it is running"));
  message.clear();
  EXPECT_EQ(one.resume(), 2);
  EXPECT_TRUE(says(message, "resumed while it is running"));
  EXPECT_TRUE(says(message, "reset while it is running"));
}

TEST(coroutine_misuse_test, resumed_by_what_it_resumed) {
  coroutine<void()>* outer = nullptr;
  std::string message;
  coroutine<void()> inner([&](auto&) { message = logic_error_of([&] { outer->resume(); }); });
  coroutine<void()> one([&](auto&) { inner.resume(); });
  outer = &one;
  one.resume();
  EXPECT_TRUE(says(message, "resumed while it is running"));
  EXPECT_TRUE(one.done());
}

TEST(coroutine_misuse_test, yielded_from_outside) {
  coroutine<int()>::yield* leaked = nullptr;
  coroutine<int()> one([&](auto& yield) {
    leaked = &yield;
    yield(1);
    return 2;
  });
  EXPECT_EQ(one.resume(), 1);
  EXPECT_TRUE(says(logic_error_of([&] { (*leaked)(5); }), "yield called outside"));
  EXPECT_EQ(one.resume(), 2);
  EXPECT_TRUE(one.done());
#if !defined(__i386__)  // its stack, still there, has been overwritten
  EXPECT_TRUE(says(logic_error_of([&] { (*leaked)(5); }), "yield called outside"));
#endif
}

TEST(coroutine_misuse_test, yielded_the_outer_one_from_an_inner) {
  std::string message;
  coroutine<int()> outer([&](auto& yield) {
    coroutine<int()> inner([&](auto&) {
      message = logic_error_of([&] { yield(5); });
      return 7;
    });
    return inner.resume();
  });
  EXPECT_EQ(outer.resume(), 7);
  EXPECT_TRUE(says(message, "yield called outside"));
}

#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
/// The inner coroutine's stack lies in the outer one's frame: both are suspended, and unwound together.
TEST(coroutine_misuse_test, yielded_the_outer_one_from_an_inner_in_its_frame) {
  std::string log;
  struct note {
    std::string& to;
    const char* what;
    ~note() { to += what; }
  };
  const auto body = [&log](auto& yield) {
    const note out{log, "outer "};
    pirn::frame_buffer<16384> buffer;
    coroutine<int()> inner(buffer, [&](auto&) {
      const note in{log, "inner "};
      yield(5);
      return 7;
    });
    return inner.resume();
  };
  coroutine<int()> resumed(body);
  EXPECT_EQ(resumed.resume(), 5);
  EXPECT_EQ(resumed.resume(), 7);
  EXPECT_EQ(log, "inner outer ");
  log.clear();
  {
    coroutine<int()> dropped(body);
    EXPECT_EQ(dropped.resume(), 5);
  }
  EXPECT_EQ(log, "inner outer ");
}
#endif

TEST(coroutine_misuse_death_test, destroyed_while_it_is_running) {
  const auto run = [] {
    std::unique_ptr<coroutine<void()>> one;
    one = std::make_unique<coroutine<void()>>([&](auto&) { one.reset(); });
    one->resume();
  };
  EXPECT_DEATH(run(), "a coroutine was destroyed while it is running");
}

TEST(coroutine_misuse_death_test, moved_while_it_is_running) {
  const auto run = [] {
    coroutine<void()>* self = nullptr;
    coroutine<void()> one([&](auto&) { const coroutine<void()> other(std::move(*self)); });
    self = &one;
    one.resume();
  };
  EXPECT_DEATH(run(), "a coroutine was moved while it is running");
}

}  // namespace
