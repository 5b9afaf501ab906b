// A server whose system fails to accept a connection: the server reports that and accepts the next one.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <vector>

#include "http/support.hpp"

namespace {

std::atomic<int> failure{0};         // of the next calls of accept4
std::atomic<int> failures_left{0};   // number of these calls
std::atomic<int> failures_given{0};  // in this test

}  // namespace

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the system's are reserved
extern "C" int accept4(int listener, ::sockaddr* from, ::socklen_t* size, int flags) {
  if (failures_left > 0) {
    --failures_left;
    ++failures_given;
    errno = failure;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_accept4, listener, from, size, flags));
}

namespace {

using namespace test;
namespace http = pirn::http;

class accept_failures : public testing::Test {
 protected:
  void SetUp() override { failures_given = failures_left = 0; }
  void fail(int error, int times) {
    failure = error;
    failures_left = times;
  }
  [[nodiscard]] http::server_options telling() {
    return {.accept_failed = [this](const pirn::accept_trouble& trouble) { told.push_back(trouble.error.value()); }};
  }
  std::vector<int> told;
};

TEST_F(accept_failures, of_one_connection_are_told_and_end_nothing) {
  const std::vector<int> all = {EPERM,       EACCES,    EOPNOTSUPP, ETIMEDOUT, ECONNABORTED, EPROTO,
                                ENETUNREACH, EHOSTDOWN, EMFILE,     ENFILE,    ENOBUFS,      ENOMEM};
  pirn::runtime({.workers = 1}).run([&] {
    running_server running(hello, telling());
    for (const int error : all) {
      fail(error, 1);
      client c(running.at);
      EXPECT_EQ(c.ask(get_hello).status, 200) << "after " << error;
    }
    EXPECT_EQ(running.server.statistics().accept_failures, all.size());
    EXPECT_EQ(running.server.statistics().accept_pauses, 4u);  // at shortages
    running.stop();
    EXPECT_TRUE(running.outcome);
  });
  EXPECT_EQ(told, all);
}

TEST_F(accept_failures, without_end_are_no_busy_loop) {
  pirn::runtime({.workers = 1}).run([&] {
    running_server running(hello, telling());
    fail(EPERM, 1'000'000);
    client c(running.at);
    ASSERT_TRUE(pirn::this_fiber::sleep_for(500ms));
    EXPECT_GT(failures_given, 32);
    EXPECT_LT(failures_given, 50);  // then ten a second
    failures_left = 0;
    EXPECT_EQ(c.ask(get_hello).status, 200);
  });
  EXPECT_EQ(told.size(), static_cast<std::size_t>(failures_given));
}

TEST_F(accept_failures, are_told_now_and_then_with_their_number) {
  std::vector<pirn::accept_trouble> troubles;
  http::server_options options = {
      .accept_failed = [&](const pirn::accept_trouble& trouble) { troubles.push_back(trouble); },
      .accept_failed_every = 150ms};
  pirn::runtime({.workers = 1}).run([&] {
    running_server running(hello, options);
    fail(EMFILE, 1'000'000);
    client c(running.at);
    EXPECT_TRUE(wait_until([&] { return troubles.size() == 3; }));
    const std::uint64_t failures = running.server.statistics().accept_failures;
    failures_left = 0;
    EXPECT_EQ(c.ask(get_hello).status, 200);
    ASSERT_EQ(troubles.size(), 3u);
    EXPECT_EQ(troubles[0].times, 1u);
    EXPECT_EQ(troubles[0].text(),
              "a connection was not accepted: " + troubles[0].error.message() + "; none has been accepted yet");
    EXPECT_GT(troubles[1].times, 1u);
    EXPECT_EQ(troubles[0].times + troubles[1].times + troubles[2].times, failures);
    EXPECT_EQ(troubles[2].accepted, 0u);
    EXPECT_NE(troubles[2].text().find(" (" + std::to_string(troubles[2].times) + " times since"), std::string::npos);
  });
}

TEST_F(accept_failures, for_ever_do_not_hold_up_a_stop_where_nothing_is_served) {
  for (const int error : {EMFILE, EPERM}) {
    pirn::runtime({.workers = 1}).run([&] {
      running_server running(hello, {.drain_timeout = 10 * long_enough});
      failures_given = 0;
      fail(error, 1'000'000'000);
      client in_the_queue(running.at);
      ASSERT_TRUE(wait_until([&] { return failures_given > 0; }));
      const auto begin = std::chrono::steady_clock::now();
      running.stop();
      EXPECT_LT(std::chrono::steady_clock::now() - begin, long_enough) << "at " << error;
      EXPECT_TRUE(running.outcome);
      failures_left = 0;
    });
  }
}

TEST_F(accept_failures, of_the_listener_end_it_and_are_returned) {
  pirn::runtime({.workers = 1}).run([&] {
    running_server running(hello, telling());
    fail(ENOTSOCK, 1'000'000);
    ASSERT_TRUE(pirn::this_fiber::sleep_for(50ms));
    failures_left = 0;
    running.stop();
    EXPECT_EQ(running.outcome.error(), std::errc::not_a_socket);
  });
}

}  // namespace
