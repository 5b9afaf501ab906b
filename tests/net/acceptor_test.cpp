// acceptor: a fiber for each connection, its end, its limits, and failures to accept.

#include "pirn/net/acceptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "net/support.hpp"

namespace {

using namespace test;
using pirn::accept_failure;
using pirn::accept_trouble;
using pirn::acceptor;
using pirn::io_error;
using pirn::tcp_listener;
using pirn::tcp_stream;

/// Echoes the stream until it ends or the fiber is asked to stop.
void echo(tcp_stream stream) {
  char buffer[64];
  for (;;) {
    const auto got = stream.read(buffer, sizeof buffer);
    if (!got || *got == 0 || !stream.write(buffer, *got)) {
      return;
    }
  }
}

bool echoes(tcp_stream& stream) {
  char answer = 0;
  return stream.write("x", in(long_enough)) && stream.read_exactly(&answer, 1, in(long_enough)) && answer == 'x';
}

void wait_until(const std::function<bool()>& holds) {
  const auto limit = in(long_enough);
  while (!holds() && std::chrono::steady_clock::now() < limit) {
    ASSERT_TRUE(pirn::this_fiber::sleep_for(1ms));
  }
  ASSERT_TRUE(holds());
}

TEST(acceptor, gives_each_connection_a_fiber_until_it_is_stopped) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([] {
    auto listener = tcp_listener::listen(loopback()).value();
    acceptor all;
    std::error_code ended;
    pirn::fiber accepting = pirn::spawn([&] { ended = all.run(listener, echo); });
    std::vector<tcp_stream> clients;
    for (int i = 0; i < 20; ++i) {
      clients.push_back(tcp_stream::connect(*listener.local_endpoint(), in(long_enough)).value());
    }
    for (auto& each : clients) {
      EXPECT_TRUE(echoes(each));
    }
    clients.resize(5);
    wait_until([&] { return all.statistics().connections == 5; });
    accepting.request_stop();
    accepting.join();  // together with those that wait for their clients
    EXPECT_EQ(ended, io_error::stopped);
    EXPECT_EQ(all.statistics().accepted, 20u);
    EXPECT_EQ(all.statistics().connections, 0u);
    char byte = 0;
    EXPECT_EQ(clients[0].read(&byte, 1, in(long_enough)), 0u);
  });
}

TEST(acceptor, a_deadline_and_a_close_end_it) {
  pirn::runtime({.workers = 1}).run([] {
    auto listener = tcp_listener::listen(loopback()).value();
    acceptor all;
    EXPECT_EQ(all.run(listener, echo, in(5ms)), io_error::timed_out);
    pirn::fiber accepting = pirn::spawn([&] { EXPECT_EQ(all.run(listener, echo), io_error::closed); });
    ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
    listener.close();
    accepting.join();
    listener = tcp_listener::listen(loopback()).value();
    acceptor full({.max_connections = 1});
    accepting = pirn::spawn([&] { EXPECT_EQ(full.run(listener, echo), io_error::closed); });
    auto first = tcp_stream::connect(*listener.local_endpoint(), in(long_enough)).value();
    EXPECT_TRUE(echoes(first));
    auto queued = tcp_stream::connect(*listener.local_endpoint(), in(long_enough)).value();
    ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
    listener.close();
    accepting.join();
    acceptor elsewhere({.fibers = {.worker = 1}});
    EXPECT_EQ(elsewhere.run(listener, echo), std::errc::invalid_argument);
  });
}

TEST(acceptor, lets_connections_drain) {
  pirn::runtime({.workers = 1}).run([] {
    auto listener = tcp_listener::listen(loopback()).value();
    acceptor all({.drain = long_enough});
    pirn::fiber accepting = pirn::spawn([&] { EXPECT_EQ(all.run(listener, echo), io_error::stopped); });
    auto client = tcp_stream::connect(*listener.local_endpoint(), in(long_enough)).value();
    EXPECT_TRUE(echoes(client));
    accepting.request_stop();
    ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
    EXPECT_TRUE(echoes(client));
    client.close();
    accepting.join();
  });
}

TEST(acceptor, gives_silent_connections_to_the_worker_that_has_the_fewest) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([] {
    auto listener = tcp_listener::listen(loopback()).value();
    std::atomic<int> on[2] = {};
    acceptor all;
    pirn::fiber accepting = pirn::spawn([&] {
      static_cast<void>(all.run(listener, [&](tcp_stream stream) {
        const auto here = static_cast<unsigned char>(pirn::detail::current_worker()->index);
        ++on[here];
        static_cast<void>(stream.write(&here, 1));
        echo(std::move(stream));
      }));
    });
    std::vector<tcp_stream> clients[2];
    const auto connect = [&](int count) {
      for (int i = 0; i < count; ++i) {
        auto client = tcp_stream::connect(*listener.local_endpoint(), in(long_enough)).value();
        unsigned char where = 0;
        ASSERT_TRUE(client.read_exactly(&where, 1, in(long_enough)));
        clients[where].push_back(std::move(client));
      }
    };
    connect(200);
    EXPECT_EQ(on[0], 100);
    EXPECT_EQ(on[1], 100);
    clients[1].clear();
    wait_until([&] { return all.statistics().connections == 100; });
    connect(100);
    EXPECT_EQ(on[0], 100);
    EXPECT_EQ(on[1], 200);
  });
}

TEST(acceptor, takes_no_more_than_so_many) {
  pirn::runtime({.workers = 1}).run([] {
    auto listener = tcp_listener::listen(loopback()).value();
    acceptor all({.max_connections = 2});
    pirn::fiber accepting = pirn::spawn([&] { static_cast<void>(all.run(listener, echo)); });
    std::vector<tcp_stream> clients;
    for (int i = 0; i < 3; ++i) {
      clients.push_back(tcp_stream::connect(*listener.local_endpoint(), in(long_enough)).value());
    }
    EXPECT_TRUE(echoes(clients[0]));
    EXPECT_TRUE(echoes(clients[1]));
    ASSERT_TRUE(clients[2].write("x"));
    char answer = 0;
    EXPECT_EQ(clients[2].read(&answer, 1, in(20ms)).error(), io_error::timed_out);
    EXPECT_EQ(all.statistics().connections, 2u);
    EXPECT_EQ(all.statistics().accepted, 2u);  // the third waits in the listener's queue
    clients[0].close();
    EXPECT_EQ(clients[2].read(&answer, 1, in(long_enough)), 1u);
  });
}

/// Connects without a suspension, so that no other fiber of the worker runs meanwhile.
tcp_stream connect_at_once(const tcp_listener& to) {
  const pirn::endpoint at = *to.local_endpoint();
  ::sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(at.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::connect(made, reinterpret_cast<const ::sockaddr*>(&address), sizeof address), 0);
  return tcp_stream(pirn::descriptor::adopt(made).value());
}

TEST(acceptor, waits_out_a_shortage_of_descriptors) {
  pirn::runtime({.workers = 1}).run([] {
    auto listener = tcp_listener::listen(loopback()).value();
    std::vector<accept_trouble> told;
    // Not woken by time: it waits for the end of a connection.
    acceptor all(
        {.longest_pause = 100 * 60s, .accept_failed = [&](const accept_trouble& each) { told.push_back(each); }});
    pirn::fiber accepting = pirn::spawn([&] { static_cast<void>(all.run(listener, echo)); });
    auto first = tcp_stream::connect(*listener.local_endpoint(), in(long_enough)).value();
    EXPECT_TRUE(echoes(first));
    auto second = connect_at_once(listener);
    auto third = connect_at_once(listener);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit tight = before;
    tight.rlim_cur = 3;  // open descriptors stay open
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    wait_until([&] { return !told.empty(); });
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(told.front().error, std::errc::too_many_files_open);
    EXPECT_EQ(told.front().kind, accept_failure::shortage);
    EXPECT_EQ(told.front().in_row, 1u);
    first.close();
    EXPECT_TRUE(echoes(second));
    EXPECT_TRUE(echoes(third));
    EXPECT_EQ(all.statistics().shortages, told.size());
  });
}

/// Makes accept fail with `error` from now on in the calling thread and in the threads that it starts.
void refuse_accept(int error) {
  ::sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(::seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_accept4, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (static_cast<unsigned>(error) & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const ::sock_fprog program{sizeof code / sizeof *code, code};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST(acceptor, what_fails_for_ever_is_told_and_no_busy_loop) {
  for (const int error : {EPERM, EACCES, ETIMEDOUT, EOPNOTSUPP}) {
    std::thread([error] {
      refuse_accept(error);
      pirn::runtime({.workers = 1}).run([error] {
        auto listener = tcp_listener::listen(loopback()).value();
        auto client = tcp_stream::connect(*listener.local_endpoint(), in(long_enough)).value();
        EXPECT_EQ(listener.accept(in(long_enough)).error(), std::error_code(error, std::system_category()));
        constexpr std::size_t many = 33 + 7 + 5;
        std::vector<accept_trouble> told;
        acceptor all({.longest_pause = 10ms, .accept_failed = [&](const accept_trouble& each) {
                        told.push_back(each);
                        if (told.size() == many) {
                          listener.close();
                        }
                      }});
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(all.run(listener, echo, in(long_enough)), io_error::closed);
        // 33 at once, then 7 pauses that double, from 0.1 ms on, then the longest.
        EXPECT_GE(std::chrono::steady_clock::now() - begin, 12700us + 5 * 10ms);
        ASSERT_EQ(told.size(), many);
        EXPECT_EQ(told.back().kind, accept_failure::connection);
        EXPECT_EQ(told.back().in_row, told.size());
        EXPECT_EQ(told.back().error, std::error_code(error, std::system_category()));
        EXPECT_EQ(all.statistics().failed, told.size());
      });
    }).join();
  }
}

TEST(acceptor, tells_once_in_a_while) {
  std::thread([] {
    refuse_accept(EPERM);
    pirn::runtime({.workers = 1}).run([] {
      auto listener = tcp_listener::listen(loopback()).value();
      auto client = tcp_stream::connect(*listener.local_endpoint(), in(long_enough)).value();
      std::vector<accept_trouble> told;
      acceptor all({.accept_failed = [&](const accept_trouble& each) { told.push_back(each); },
                    .accept_failed_every = 2 * long_enough});
      const auto limit = in(long_enough);
      while (all.statistics().failed <= 32 && std::chrono::steady_clock::now() < limit) {
        EXPECT_EQ(all.run(listener, echo, in(50ms)), io_error::timed_out);
      }
      ASSERT_EQ(told.size(), 1u);
      EXPECT_EQ(told[0].times, 1u);
      EXPECT_EQ(told[0].text(),
                "a connection was not accepted: " + told[0].error.message() + "; none has been accepted yet");
      EXPECT_GT(all.statistics().failed, 32u);
    });
  }).join();
}

TEST(acceptor, knows_what_a_failure_is_about) {
  const auto kind = [](int number) { return pirn::kind_of_accept_failure({number, std::system_category()}); };
  for (const int each : {ECONNABORTED, EPROTO, EPERM, EACCES, EOPNOTSUPP, ETIMEDOUT, ENETDOWN, EHOSTUNREACH, ENONET}) {
    EXPECT_EQ(kind(each), accept_failure::connection) << each;
  }
  for (const int each : {EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
    EXPECT_EQ(kind(each), accept_failure::shortage) << each;
  }
  for (const int each : {EBADF, EINVAL, ENOTSOCK}) {
    EXPECT_EQ(kind(each), accept_failure::listener) << each;
  }
  for (const io_error each : {io_error::timed_out, io_error::stopped, io_error::closed, io_error::expired}) {
    EXPECT_EQ(pirn::kind_of_accept_failure(each), accept_failure::listener);
  }
}

}  // namespace
