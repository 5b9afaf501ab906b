// A child process has its parent's runtimes in memory and none of their threads. It may call exec. Any other use of the
// runtimes is detected instead of waiting for ever.
#include <signal.h>
#include <unistd.h>

#include <functional>

#include "fiber/support.hpp"
#include "stack/support.hpp"

namespace {

using namespace pirn_test;

using stack_test::child_result;

/// Forks in the calling thread or fiber, and runs `in_child` in the child.
child_result fork_and(const std::function<void()>& in_child) {
  return stack_test::in_child([&] {
    alarm(20);  // a child that hangs is a failure
    signal(SIGABRT, SIG_DFL);
    in_child();
    return 0;
  });
}

void expect_found_out(const child_result& of) {
  EXPECT_TRUE(of.killed_by(SIGABRT)) << of.status;
  EXPECT_TRUE(of.says("a process made by fork uses a runtime of its parent")) << of.error_output;
}

#if defined(PIRN_TSAN)
#define SKIP_UNDER_TSAN() GTEST_SKIP() << "ThreadSanitizer itself ends a child of a process with threads"
#else
#define SKIP_UNDER_TSAN() static_cast<void>(0)
#endif

TEST(fork, a_child_of_a_fiber_may_end_or_call_exec) {
  SKIP_UNDER_TSAN();
  rig r(1);
  r.rt.run([] {
    EXPECT_EQ(fork_and([] {}).status, 0);
    const child_result after_exec =
        fork_and([] { execl("/bin/sh", "sh", "-c", "exit 3", static_cast<char*>(nullptr)); });
    EXPECT_TRUE(after_exec.exited_with(3)) << after_exec.status;
    pirn::this_fiber::yield();  // the parent continues
    pirn::spawn([] { pirn::this_fiber::yield(); }).join();
  });
}

TEST(fork, a_fiber_that_suspends_in_the_child_is_found_out) {
  SKIP_UNDER_TSAN();
  rig r(2);
  r.rt.run([] {
    pirn::fiber other = pirn::spawn([] { static_cast<void>(pirn::this_fiber::sleep_for(1ms)); });
    expect_found_out(fork_and([] { pirn::this_fiber::yield(); }));
    expect_found_out(fork_and([] { static_cast<void>(pirn::this_fiber::sleep_for(1ms)); }));
    expect_found_out(fork_and([] { pirn::spawn([] {}).join(); }));
    expect_found_out(fork_and([] { pirn::spawn([] {}, {.worker = 1}).detach(); }));
    other.join();
  });
}

TEST(fork, a_thread_that_uses_the_runtime_in_the_child_is_found_out) {
  SKIP_UNDER_TSAN();
  rig r(1);
  pirn::stop_source source;
  pirn::fiber waiting = r.rt.spawn([] { EXPECT_FALSE(pirn::this_fiber::sleep_for(1h)); }, {.stop = source.get_token()});
  r.rt.run([] {});  // now the fiber waits
  expect_found_out(fork_and([&] { r.rt.run([] {}); }));
  expect_found_out(fork_and([&] { source.request_stop(); }));
  expect_found_out(fork_and([&] { r.rt.~runtime(); }));
  source.request_stop();
  waiting.join();
}

TEST(fork, a_child_may_have_a_runtime_of_its_own) {
  SKIP_UNDER_TSAN();
  rig r(1);
  const child_result of = fork_and([] {
    int sum = 0;
    {
      pirn::runtime own({.workers = 1});
      own.run([&] { pirn::spawn([&] { sum += 7; }).join(); });
    }
    _exit(sum);
  });
  EXPECT_TRUE(of.exited_with(7)) << of.status << of.error_output;
}

TEST(fork, a_child_of_a_thread_with_a_worker_may_wait_and_have_a_runtime_of_its_own) {
  SKIP_UNDER_TSAN();
  rig r(1, {.calling_thread = true});
  r.rt.run([] {});
  for (const bool calling_thread : {false, true}) {
    const child_result of = fork_and([&] {
      pirn::this_fiber::yield();
      EXPECT_TRUE(pirn::this_fiber::sleep_for(1ms).has_value());
      int sum = 0;
      {
        pirn::runtime own({.workers = 1, .calling_thread = calling_thread});
        own.run([&] { pirn::spawn([&] { sum += 7; }).join(); });
      }
      _exit(sum);
    });
    EXPECT_TRUE(of.exited_with(7)) << of.status << of.error_output;
  }
  expect_found_out(fork_and([&] { r.rt.run([] {}); }));
  expect_found_out(fork_and([&] { r.rt.~runtime(); }));
}

}  // namespace
