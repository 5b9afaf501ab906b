// Ten thousand idle connections, as the descriptor limit of one process allows.
#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "http/child_server.hpp"

namespace {

using namespace test;

TEST(idle, ten_thousand_connections_are_held) {
  constexpr std::size_t count = 10'000;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur < count + 100) {
    GTEST_SKIP() << "the limit of open files is " << limit.rlim_cur;
  }
  child_server server({.connection_limit = count + 1});
  pirn::runtime({.workers = 1}).run([&] {
    const std::size_t before = server.resident_kib();
    std::vector<client> clients;
    for (std::size_t i = 0; i < count; ++i) {
      clients.emplace_back(server.at);
    }
    for (client& c : clients) {
      ASSERT_EQ(c.ask(get_hello).status, 200);
    }
    std::printf("%zu KiB for each idle connection\n", (server.resident_kib() - before) / count);
    server.signal(SIGTERM);
    for (client& c : clients) {
      ASSERT_TRUE(c.ends_cleanly());
    }
  });
  EXPECT_EQ(server.wait(), 0);
}

}  // namespace
