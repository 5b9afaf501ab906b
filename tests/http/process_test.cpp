// A server as a process: signals end it cleanly.
#include <gtest/gtest.h>

#include "http/child_server.hpp"

namespace {

using namespace test;

class process : public testing::TestWithParam<int> {};

TEST_P(process, a_signal_drains_connections_and_ends_it_with_0) {
  child_server server({.linger_timeout = 200ms});
  pirn::runtime({.workers = 1}).run([&] {
    client idle(server.at);
    EXPECT_EQ(idle.ask(get_hello).status, 200);
    client busy(server.at);
    busy.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_TRUE(pirn::this_fiber::sleep_for(50ms));
    server.signal(GetParam());
    EXPECT_TRUE(idle.ends_cleanly());
    const reply last = busy.receive();
    EXPECT_EQ(last.status, 200);
    EXPECT_EQ(last.body, "Hello, world!\n");
    EXPECT_TRUE(busy.ends_cleanly());
  });
  const int status = server.wait();
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

INSTANTIATE_TEST_SUITE_P(signals, process, testing::Values(SIGINT, SIGTERM),
                         [](const auto& about) { return about.param == SIGINT ? "SIGINT" : "SIGTERM"; });

}  // namespace
