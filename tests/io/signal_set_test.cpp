// Signals as values: arrivals, restored dispositions, refusals, and children.

#include "pirn/io/signal_set.hpp"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <thread>

#include "pirn/fiber/blocking.hpp"
#include "pirn/fiber/runtime.hpp"

namespace {

using namespace std::chrono_literals;

#if defined(PIRN_TSAN)
#define SKIP_UNDER_TSAN() GTEST_SKIP() << "ThreadSanitizer delivers signals late, so that they are blocked as well"
#else
#define SKIP_UNDER_TSAN() static_cast<void>(0)
#endif

TEST(signal_set, hands_a_signal_to_a_fiber) {
  pirn::signal_set signals({SIGUSR1, SIGUSR2});
  pirn::runtime runtime({.workers = 1});
  runtime.run([&] {
    pirn::fiber sender = pirn::spawn([] {
      ASSERT_TRUE(pirn::this_fiber::sleep_for(2ms));
      ::kill(::getpid(), SIGUSR2);
    });
    EXPECT_EQ(signals.wait(), SIGUSR2);
    sender.join();
    EXPECT_EQ(signals.wait(std::chrono::steady_clock::now() + 2ms).error(), pirn::io_error::timed_out);
  });
}

TEST(signal_set, may_be_made_while_workers_run) {
  SKIP_UNDER_TSAN();
  pirn::runtime runtime({.workers = 2});
  runtime.run([] {
    pirn::signal_set signals({SIGUSR1});
    for (int i = 0; i < 20; ++i) {
      ::kill(::getpid(), SIGUSR1);
      EXPECT_EQ(signals.wait(), SIGUSR1);
    }
  });
}

TEST(signal_set, each_arrival_is_taken_once) {
  pirn::signal_set signals({SIGUSR1, SIGUSR2});
  pirn::runtime runtime({.workers = 2});
  runtime.run([&] {
    std::multiset<int> got[2];
    pirn::fiber takers[2];
    for (int i = 0; i < 2; ++i) {
      takers[i] = pirn::spawn([&, i] { got[i].insert(signals.wait().value()); }, {.worker = i});
    }
    ::kill(::getpid(), SIGUSR1);
    ::kill(::getpid(), SIGUSR2);
    takers[0].join();
    takers[1].join();
    got[0].merge(got[1]);
    EXPECT_EQ(got[0], (std::multiset<int>{SIGUSR1, SIGUSR2}));
  });
}

volatile ::sig_atomic_t handled = 0;

TEST(signal_set, what_the_signal_did_before_it_does_again) {
  struct ::sigaction own{};
  own.sa_handler = [](int) { handled = handled + 1; };
  struct ::sigaction before{};
  ASSERT_EQ(::sigaction(SIGUSR1, &own, &before), 0);
  {
    pirn::signal_set signals({SIGUSR1});
    ::raise(SIGUSR1);
    EXPECT_EQ(signals.wait(), SIGUSR1);
    ::raise(SIGUSR1);  // no waiter takes it
    EXPECT_EQ(handled, 0);
  }
  ::raise(SIGUSR1);
  EXPECT_EQ(handled, 1);
  ::sigaction(SIGUSR1, &before, nullptr);
  ::sigset_t now;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
  EXPECT_EQ(::sigismember(&now, SIGUSR1), 0);
}

TEST(signal_set, refuses_what_it_cannot_take) {
  EXPECT_THROW(pirn::signal_set({1000}), std::system_error);
  EXPECT_THROW(pirn::signal_set({SIGUSR1, SIGKILL}), std::system_error);
  pirn::signal_set first({SIGUSR1});
  EXPECT_THROW(pirn::signal_set({SIGUSR2, SIGUSR1}), std::system_error);
  pirn::signal_set other({SIGUSR2});
  ::raise(SIGUSR1);
  EXPECT_EQ(first.wait(), SIGUSR1);
}

/// Returns whether a signal that this process takes as a value ends the child.
bool ends(::pid_t child) {
  ::kill(child, SIGTERM);
  int status = 0;
  const auto limit = std::chrono::steady_clock::now() + 10s;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > limit) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(1ms);
  }
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
}

TEST(signal_set, children_are_ended_by_a_signal_as_ever) {
  SKIP_UNDER_TSAN();
  const auto start = [] {
    ::pid_t child = -1;
    char name[] = "sleep";
    char time[] = "100";
    char* const arguments[] = {name, time, nullptr};
    EXPECT_EQ(::posix_spawnp(&child, name, nullptr, nullptr, arguments, environ), 0);
    return child;
  };
  pirn::signal_set signals({SIGINT, SIGTERM});
  pirn::runtime runtime({.workers = 1});
  runtime.run([&] {
    const ::pid_t of_fiber = start();
    const ::pid_t of_blocking = pirn::blocking(start);
    pirn::blocking([&] {
      EXPECT_TRUE(ends(of_fiber));
      EXPECT_TRUE(ends(of_blocking));
    });
  });
}

TEST(signal_set, a_child_before_its_exec_tells_its_parent_nothing) {
  SKIP_UNDER_TSAN();
  pirn::signal_set signals({SIGTERM});
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const ::pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(::write(ready[1], "x", 1));
    for (;;) {
      ::pause();
    }
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(ends(child));
  EXPECT_EQ(signals.wait(std::chrono::steady_clock::now() + 5ms).error(), pirn::io_error::timed_out);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(signal_set, a_child_may_have_its_own) {
  SKIP_UNDER_TSAN();
  pirn::signal_set signals({SIGTERM});
  const ::pid_t child = ::fork();
  if (child == 0) {
    int got = 0;
    {
      pirn::signal_set own({SIGTERM});
      ::raise(SIGTERM);
      got = own.wait().value_or(0);
    }
    ::raise(SIGTERM);  // has its original effect
    ::_exit(got);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  EXPECT_EQ(signals.wait(std::chrono::steady_clock::now() + 5ms).error(), pirn::io_error::timed_out);
}

}  // namespace
