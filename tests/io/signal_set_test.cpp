#include "pirn/io/signal_set.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

#include "pirn/fiber/runtime.hpp"

namespace {

using namespace std::chrono_literals;

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

TEST(signal_set, works_on_a_thread_and_restores_the_mask) {
  {
    pirn::signal_set signals({SIGUSR1});
    ::raise(SIGUSR1);
    EXPECT_EQ(signals.wait(), SIGUSR1);
  }
  ::sigset_t now;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
  EXPECT_EQ(::sigismember(&now, SIGUSR1), 0);
}

TEST(signal_set, refuses_what_is_no_signal) { EXPECT_THROW(pirn::signal_set({1000}), std::system_error); }

}  // namespace
