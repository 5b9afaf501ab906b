// A server with slow clients, with too many clients, and at its own end.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "http/support.hpp"

namespace {

using namespace test;
namespace http = pirn::http;

http::server_options impatient() {
  return {.header_timeout = 50ms,
          .body_timeout = 50ms,
          .write_timeout = 50ms,
          .idle_timeout = 50ms,
          .linger_timeout = 50ms};
}

TEST(server_limits, a_slow_header_is_cut_off) {
  with_server(hello, impatient(), [](running_server& running) {
    client c(running.at);
    const auto begin = std::chrono::steady_clock::now();
    // One byte at a time is always in time for the next read, but not for the whole header.
    for (const char byte : std::string(1000, 'G')) {
      if (!c.stream.write({&byte, 1}, in(long_enough)) || std::chrono::steady_clock::now() - begin > 10s) {
        break;
      }
      ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
      if (running.server.statistics().connections == 0) {
        break;
      }
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s);
    client silent(running.at);
    silent.send("GET / HTTP/1.1\r\nHost");
    EXPECT_EQ(silent.receive().status, 408);
    EXPECT_TRUE(silent.ends_cleanly());
  });
}

TEST(server_limits, empty_lines_do_not_keep_a_connection) {
  with_server(hello, {}, [](running_server& running) {
    client c(running.at);
    c.send("\r\n\r\n" + std::string(get_hello));
    EXPECT_EQ(c.receive().status, 200);
    EXPECT_EQ(c.ask("\r\n\r\n\r\n\r\n\r\n").status, 400);
    EXPECT_TRUE(c.ends_cleanly());
  });
}

TEST(server_limits, an_empty_line_in_pieces_takes_no_time_from_the_request_behind_it) {
  with_server(hello, {.header_timeout = 500ms}, [](running_server& running) {
    client c(running.at);
    c.send("\r");
    ASSERT_TRUE(pirn::this_fiber::sleep_for(20ms));
    c.send("\n");
    ASSERT_TRUE(pirn::this_fiber::sleep_for(700ms));
    c.send("GET / HTTP/1.1\r\n");
    ASSERT_TRUE(pirn::this_fiber::sleep_for(20ms));
    EXPECT_EQ(c.ask("Host: h\r\n\r\n").status, 200);
  });
}

TEST(server_limits, a_client_that_reads_a_little_all_the_time_is_cut_off) {
  const auto large = [](const http::request&, http::response& answer) { answer.body(std::string(16 << 20, 'l')); };
  with_server(large, impatient(), [](running_server& running) {
    client c(running.at);
    c.send(get_hello);
    char little[512];
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < 8s && c.stream.read(little, sizeof little, in(long_enough)) &&
           (running.server.statistics().accepted == 0 || running.server.statistics().connections != 0)) {
      ASSERT_TRUE(pirn::this_fiber::sleep_for(2ms));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s);
  });
}

TEST(server_limits, a_slow_body_is_cut_off) {
  with_server(hello, impatient(), [](running_server& running) {
    client c(running.at);
    EXPECT_EQ(c.ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab").status, 408);
    EXPECT_TRUE(c.ends_cleanly());
  });
}

TEST(server_limits, an_idle_connection_is_ended) {
  with_server(hello, impatient(), [](running_server& running) {
    client fresh(running.at);
    EXPECT_TRUE(fresh.ends_cleanly());
    client used(running.at);
    EXPECT_EQ(used.ask(get_hello).status, 200);
    EXPECT_TRUE(used.ends_cleanly());
  });
}

TEST(server_limits, a_client_that_does_not_read_is_cut_off) {
  const auto large = [](const http::request&, http::response& answer) { answer.body(std::string(16 << 20, 'l')); };
  with_server(large, impatient(), [](running_server& running) {
    client c(running.at);
    c.send(get_hello);
    EXPECT_TRUE(wait_until([&] { return running.server.statistics().accepted == 1; }));
    EXPECT_TRUE(wait_until([&] { return running.server.statistics().connections == 0; }));
  });
}

TEST(server_limits, a_client_that_never_ends_does_not_linger) {
  with_server(hello, impatient(), [](running_server& running) {
    client c(running.at);
    EXPECT_EQ(c.get("/", "Connection: close\r\n").status, 200);
    EXPECT_TRUE(wait_until([&] { return running.server.statistics().connections == 0; }));
  });
}

TEST(server_limits, stopping_ends_idle_connections_at_once_and_lets_requests_finish) {
  std::atomic<bool> asked{false};
  const auto slow = [&](const http::request& request, http::response& answer) {
    if (request.target == "/slow") {
      asked = true;
      static_cast<void>(pirn::this_fiber::sleep_for(100ms));
    }
    answer.body("done");
  };
  with_server(slow, {.linger_timeout = 100ms}, [&](running_server& running) {
    client fresh(running.at);
    client idle(running.at);
    EXPECT_EQ(idle.get("/").status, 200);
    client busy(running.at);
    busy.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    ASSERT_TRUE(wait_until([&] { return asked.load() && running.server.statistics().accepted == 3; }));
    const auto begin = std::chrono::steady_clock::now();
    running.stop();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
    EXPECT_TRUE(running.outcome);
    EXPECT_TRUE(fresh.ends_cleanly());
    EXPECT_TRUE(idle.ends_cleanly());
    const reply last = busy.receive();
    EXPECT_EQ(last.body, "done");
    EXPECT_EQ(last.field("Connection"), "close");
    EXPECT_TRUE(busy.ends_cleanly());
    EXPECT_EQ(pirn::tcp_stream::connect(running.at).error(), std::errc::connection_refused);
  });
}

TEST(server_limits, stopping_answers_what_has_arrived) {
  // On one worker, and without a suspension: the server has seen none of this when it is stopped.
  pirn::runtime({.workers = 1}).run([] {
    running_server running(hello, {.linger_timeout = 50ms});
    client kept(running.at);
    ASSERT_EQ(kept.ask(get_hello).status, 200);
    ASSERT_TRUE(pirn::this_fiber::sleep_for(1ms));  // until the connection is idle
    ASSERT_EQ(::send(kept.stream.native(), get_hello.data(), get_hello.size(), 0),
              static_cast<ssize_t>(get_hello.size()));
    ::sockaddr_storage to;
    const auto size = pirn::detail::to_native(running.at, to);
    std::vector<int> queued;
    for (int i = 0; i < 20; ++i) {
      const int native = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      ASSERT_EQ(::connect(native, reinterpret_cast<::sockaddr*>(&to), size), 0);
      if (i > 0) {
        ASSERT_EQ(::send(native, get_hello.data(), get_hello.size(), 0), static_cast<ssize_t>(get_hello.size()));
      }
      queued.push_back(native);
    }
    running.stop();
    EXPECT_EQ(running.server.statistics().accepted, 21u);
    const reply last = kept.receive();
    EXPECT_EQ(last.status, 200);
    EXPECT_EQ(last.field("Connection"), "close");
    EXPECT_TRUE(kept.ends_cleanly());
    for (const int native : queued) {
      std::string all;
      char bytes[1024];
      ssize_t got;
      while ((got = ::recv(native, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        all.append(bytes, static_cast<std::size_t>(got));
      }
      EXPECT_EQ(got, 0) << "not a clean end";
      EXPECT_EQ(all.starts_with("HTTP/1.1 200 OK\r\n"), native != queued.front());
      EXPECT_EQ(all.find("Connection: close\r\n") != std::string::npos, native != queued.front());
      ::close(native);
    }
  });
}

TEST(server_limits, what_does_not_finish_in_time_is_cut) {
  const auto endless = [](const http::request&, http::response&) {
    EXPECT_FALSE(pirn::this_fiber::sleep_for(std::chrono::hours(1)));
  };
  with_server(endless, {.drain_timeout = 30ms}, [](running_server& running) {
    client c(running.at);
    c.send(get_hello);
    ASSERT_TRUE(wait_until([&] { return running.server.statistics().connections == 1; }));
    ASSERT_TRUE(pirn::this_fiber::sleep_for(20ms));
    running.stop();
    EXPECT_EQ(running.server.statistics().connections, 0u);
  });
}

TEST(server_limits, stopping_at_the_limit_ends_in_time) {
  const auto slow = [](const http::request&, http::response&) { EXPECT_FALSE(pirn::this_fiber::sleep_for(10s)); };
  with_server(slow, {.drain_timeout = 50ms, .connection_limit = 1}, [](running_server& running) {
    client busy(running.at);
    busy.send(get_hello);
    ASSERT_TRUE(wait_until([&] { return running.server.statistics().connections == 1; }));
    client accepted(running.at);
    ASSERT_TRUE(wait_until([&] { return running.server.statistics().accept_pauses == 1; }));
    client first_queued(running.at), second_queued(running.at);
    const auto begin = std::chrono::steady_clock::now();
    running.stop();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
    EXPECT_EQ(running.server.statistics().connections, 0u);
  });
}

TEST(server_limits, stopping_answers_what_has_begun_to_arrive) {
  constexpr std::string_view post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello";
  for (const std::size_t first : {std::size_t{8}, post.size() - 5, post.size() - 2}) {
    for (const bool gives_up : {false, true}) {
      // On one worker, and without a suspension: the server has seen none of this when it is stopped.
      pirn::runtime({.workers = 1}).run([&] {
        running_server running(hello, {.linger_timeout = 50ms});
        client kept(running.at);
        ASSERT_EQ(kept.ask(get_hello).status, 200);
        ASSERT_TRUE(pirn::this_fiber::sleep_for(1ms));  // until the connection is idle
        ASSERT_EQ(::send(kept.stream.native(), post.data(), first, 0), static_cast<ssize_t>(first));
        running.server.stop();
        ASSERT_TRUE(pirn::this_fiber::sleep_for(20ms));
        if (gives_up) {
          ASSERT_TRUE(kept.stream.shutdown(pirn::shutdown_half::write));
        } else {
          kept.send(post.substr(first));
        }
        const reply last = kept.receive();
        EXPECT_EQ(last.status, gives_up ? 400 : 200);
        EXPECT_EQ(last.field("Connection"), "close");
        EXPECT_TRUE(kept.ends_cleanly());
      });
    }
  }
}

TEST(server_limits, a_stop_of_the_serving_fiber_ends_it_too) {
  pirn::runtime({.workers = 1}).run([] {
    auto listener = pirn::tcp_listener::listen(loopback()).value();
    http::server server(hello);
    stop_while_blocked([&] { EXPECT_TRUE(server.serve(listener)); });
    EXPECT_FALSE(listener.is_open());
  });
}

TEST(server_limits, without_descriptors_accepting_pauses_and_resumes) {
  std::atomic<int> failures{0};
  std::atomic<bool> asked{false}, over{false};
  const auto busy = [&](const http::request&, http::response& answer) {
    asked = true;
    while (!over && pirn::this_fiber::sleep_for(1ms)) {
    }
    answer.body("done");
  };
  const auto count = [&](const pirn::accept_trouble& trouble) {
    EXPECT_EQ(trouble.error, std::errc::too_many_files_open);
    ++failures;
  };
  with_server(busy, {.accept_failed = count}, [&](running_server& running) {
    client first(running.at);
    first.send(get_hello);  // an idle connection would be closed
    ASSERT_TRUE(wait_until([&] { return asked.load(); }));
    // A socket that is made before the limit and connected under it: no descriptor is left for the server's side.
    const int native = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(native, 0);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit tight = before;
    tight.rlim_cur = 3;  // open descriptors stay open
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    ::sockaddr_storage to;
    const auto size = pirn::detail::to_native(running.at, to);
    ASSERT_EQ(::connect(native, reinterpret_cast<::sockaddr*>(&to), size), 0);
    EXPECT_TRUE(wait_until([&] { return running.server.statistics().accept_pauses > 0; }));
    EXPECT_EQ(running.server.statistics().accepted, 1u);
    EXPECT_GT(failures.load(), 0);
    over = true;
    EXPECT_EQ(first.receive().status, 200);  // existing connections are served meanwhile
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_TRUE(wait_until([&] { return running.server.statistics().accepted == 2; }));
    ::close(native);
  });
}

TEST(server_limits, holds_many_idle_connections) {
#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
  constexpr std::size_t count = 200;
#else
  constexpr std::size_t count = 1000;
#endif
  with_server(hello, {}, [](running_server& running) {
    std::vector<client> clients;
    for (std::size_t i = 0; i < count; ++i) {
      clients.emplace_back(running.at);
    }
    EXPECT_TRUE(wait_until([&] { return running.server.statistics().connections == count; }));
    for (client& c : clients) {
      EXPECT_EQ(c.ask(get_hello).status, 200);
    }
    running.stop();
    EXPECT_EQ(running.server.statistics().connections, 0u);
    EXPECT_TRUE(clients.front().ends_cleanly());
    EXPECT_TRUE(clients.back().ends_cleanly());
  });
}

}  // namespace
