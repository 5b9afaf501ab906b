// pirn::http on the network of an exploration.
#include <gtest/gtest.h>
#include <pirn/http/server.hpp>
#include <pirn/net/tcp_listener.hpp>
#include <pirn/net/tcp_stream.hpp>

#include <string>

#include "pirn/sim/network.hpp"
#include "pirn/sim/var.hpp"
#include "sim/fibers.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using pirn_test::explore_and_print;
using pirn_test::run_fibers;

namespace {

const endpoint here{ip_address::loopback_v4(), 80};
constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";

/// Returns all that the server sends until it closes the connection.
std::string rest_of(tcp_stream& stream) {
  std::string answer;
  char buffer[512];
  for (;;) {
    const auto got = stream.read(buffer, sizeof buffer);
    if (!got || *got == 0) {
      return answer;
    }
    answer.append(buffer, *got);
  }
}

std::string ask(std::string_view request) {
  auto stream = tcp_stream::connect(here);
  return stream && stream->write(request) ? rest_of(*stream) : std::string();
}

void say_yes(const http::request&, http::response& answer) { answer.body("yes"); }

bool is_yes(std::string_view answer) {
  return answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nyes");
}

/// Runs a server on worker 0 and a client on worker 1. Stops the server after the client if `stops`; otherwise the
/// client stops it.
void serve(const std::function<void(http::server&)>& client, bool stops = true, http::server_options options = {}) {
  tcp_listener listener = std::move(tcp_listener::listen(here).value());
  http::server server(&say_yes, std::move(options));
  run_fibers(2, {[&] { sim::check(server.serve(listener).has_value()); },
                 [&] {
                   client(server);
                   if (stops) {
                     server.stop();
                   }
                 }});
  sim::check(server.statistics().connections == 0);
}

sim::options randomly(std::uint64_t executions, sim::faults what = {}) {
  return {.strategy = sim::strategy::random, .executions = executions, .faults = what};
}

TEST(http, who_asks_is_answered) {
  const auto program = [] {
    serve([](http::server&) {
      const std::string answer = ask(get);
      sim::check(is_yes(answer));
      sim::check(answer.find("Date: Sat, 01 Jan 2000 00:00:00 GMT") != std::string::npos);
    });
  };
  for (const sim::options& options : {randomly(2000), sim::options{.preemptions = 1, .executions = 2000}}) {
    const sim::result found = explore_and_print(program, options);
    EXPECT_TRUE(found) << found.text();
  }
}

/// The server is stopped by a fiber of worker 0, the server's, or 1, the client's.
void stop_while_one_asks(int stops_on) {
  serve(
      [&](http::server& server) {
        sim::atomic<bool> stopped(false);
        auto stream = std::move(tcp_stream::connect(here).value());
        fiber stopper = spawn(
            [&] {
              stopped.store(true);
              server.stop();
            },
            {.worker = stops_on});
        const bool in_time = stream.write(get).has_value() && !stopped.load();
        const std::string answer = rest_of(stream);
        sim::check(is_yes(answer) || (answer.empty() && !in_time));
        stopper.join();
      },
      false);
}

TEST(http, who_has_asked_before_the_server_is_stopped_is_answered) {
  for (const auto strategy : {sim::strategy::random, sim::strategy::pct}) {
    for (const int stops_on : {0, 1}) {
      const sim::result found =
          explore_and_print([&] { stop_while_one_asks(stops_on); }, {.strategy = strategy, .executions = 2000});
      EXPECT_TRUE(found) << found.text();
    }
  }
}

TEST(http, who_does_not_finish_asking_is_told_so_in_time) {
  const sim::result found = explore_and_print(
      [] {
        serve([](http::server&) {
          sim::check(ask(get.substr(0, 20)).starts_with("HTTP/1.1 408 "));
          sim::check(sim::elapsed() >= 10s && sim::elapsed() < 11s);
        });
      },
      randomly(500));
  EXPECT_TRUE(found) << found.text();
}

/// Sends a body in `parts` parts, one every 20 ms, and returns the answer.
std::string answer_to_body_in(std::size_t parts, std::size_t part) {
  auto stream = std::move(tcp_stream::connect(here).value());
  sim::check(stream
                 .write("POST / HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: " +
                        std::to_string(parts * part) + "\r\n\r\n")
                 .has_value());
  fiber sender = spawn([&] {
    for (std::size_t i = 0; i < parts && stream.write(std::string(part, 'b')); ++i) {
      if (!this_fiber::sleep_for(20ms)) {
        break;
      }
    }
  });
  const std::string answer = rest_of(stream);
  sender.request_stop();
  sender.join();
  return answer;
}

// In virtual time, since a real clock under load delays the parts that keep the pace.
TEST(http, a_body_that_does_not_keep_the_pace_is_cut_off) {
  const auto program = [](std::size_t parts, std::size_t part, http::server_options options, std::string_view status,
                          std::chrono::milliseconds at) {
    options.body_timeout = 1h;
    const sim::result found = explore_and_print(
        [&] {
          serve(
              [&](http::server&) {
                sim::check(answer_to_body_in(parts, part).starts_with("HTTP/1.1 " + std::string(status)));
                sim::check(sim::elapsed() >= at && sim::elapsed() < at + 50ms);
              },
              true, options);
        },
        randomly(10));
    EXPECT_TRUE(found) << found.text();
  };
  const http::server_options usual{.body_rate = 1000, .body_grace = 500ms};
  program(100, 100, usual, "200", 99 * 20ms);
  program(1000, 1, usual, "408", 520ms);
  program(6, 1, {.body_rate = 0, .body_grace = 1ms}, "200", 5 * 20ms);
}

TEST(http, many_bytes_at_the_beginning_of_a_body_do_not_count_for_ever) {
  const sim::result found = explore_and_print(
      [] {
        serve(
            [](http::server&) {
              const std::string begin =
                  "POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 50000\r\n\r\n" + std::string(49'999, 'b');
              sim::check(ask(begin).starts_with("HTTP/1.1 408 "));
              sim::check(sim::elapsed() >= 200ms && sim::elapsed() < 250ms);
            },
            true, {.body_timeout = 1h, .body_rate = 1, .body_grace = 100ms});
      },
      randomly(20));
  EXPECT_TRUE(found) << found.text();
}

TEST(http, is_answered_in_pieces) {
  const sim::result found = explore_and_print([] { serve([](http::server&) { sim::check(is_yes(ask(get))); }); },
                                              randomly(1000, {.short_transfers = true, .max_per_execution = 200}));
  EXPECT_TRUE(found) << found.text();
}

TEST(http, outlives_connections_that_are_reset) {
  const sim::result found = explore_and_print(
      [] {
        serve([](http::server&) {
          static_cast<void>(ask(get));
          static_cast<void>(ask(get));
        });
      },
      randomly(2000, {.spurious = true, .reset = true, .max_per_execution = 3}));
  EXPECT_TRUE(found) << found.text();
}

/// At a limit of one connection: one client that takes its time before it asks, and two that ask at once.
void crowd() {
  serve(
      [](http::server& server) {
        std::uint64_t answered = 0;
        const auto count = [&answered](const std::string& answer) {
          sim::check(is_yes(answer) || answer.empty());
          answered += answer.empty() ? 0 : 1;
        };
        auto first = std::move(tcp_stream::connect(here).value());
        fiber second = spawn([&] { count(ask(get)); });
        fiber third = spawn([&] { count(ask(get)); });
        this_fiber::yield();
        count(first.write(get) ? rest_of(first) : std::string());
        second.join();
        third.join();
        const http::server_statistics then = server.statistics();
        sim::check(then.accepted == 3);
        // Each client without an answer has made room, and no client is left for which the last one would.
        sim::check(answered > 0 && answered + then.made_room >= 3);
      },
      true, {.connection_limit = 1});
}

TEST(http, who_waits_makes_room_and_is_answered_otherwise) {
  for (const auto strategy : {sim::strategy::random, sim::strategy::pct}) {
    const sim::result found = explore_and_print(&crowd, {.strategy = strategy, .executions = 1000});
    EXPECT_TRUE(found) << found.text();
  }
}

/// The ends of a connection's second request, over all schedules, when it was chosen to make room meanwhile.
struct {
  long answered = 0;
  long told = 0;
  long closed = 0;
} seconds;

/// At a limit of one connection: an idle client asks again as another client is accepted. If `early`, it has sent half
/// of that request before.
void begins_as_it_is_chosen(bool early) {
  constexpr std::string_view again = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
  tcp_listener listener = std::move(tcp_listener::listen(here).value());
  sim::atomic<int> handled(0);
  const auto answer = [&](const http::request& asked, http::response& response) {
    handled.fetch_add(1);
    say_yes(asked, response);
  };
  http::server server(answer, {.connection_limit = 1});
  const auto client = [&] {
    auto kept = std::move(tcp_stream::connect(here).value());
    sim::check(kept.write(again).has_value());
    std::string first;
    for (char byte; !is_yes(first); first += byte) {
      sim::check(kept.read_exactly(&byte, 1).has_value(), "there is nobody else yet");
    }
    const std::size_t before = early ? again.size() / 2 : 0;
    const bool written = before == 0 || kept.write(again.substr(0, before)).has_value();
    fiber other = spawn([] { sim::check(is_yes(ask(get)), "it finds room in the end"); });
    for (int turns = 0; turns < 30 && server.statistics().accepted < 2; ++turns) {
      this_fiber::yield();  // a limited number of turns: a schedule might never get there
    }
    static_cast<void>(written && kept.write(again.substr(before)).has_value());
    const std::string second = rest_of(kept);
    const bool was_answered = is_yes(second);
    const bool was_told = second.starts_with("HTTP/1.1 408 ") || second.starts_with("HTTP/1.1 400 ");
    sim::check(was_answered || was_told || second.empty(), "an answer is whole");
    sim::check(!early || !second.empty(), "what has begun to arrive is answered, or told that it is not");
    ++(was_answered ? seconds.answered : was_told ? seconds.told : seconds.closed);
    other.join();
    sim::check(handled.load() == 2 + (was_answered ? 1 : 0), "what is handled is answered, and once");
    const http::server_statistics then = server.statistics();
    sim::check(then.accepted == 2 && then.made_room >= 1, "the first connection ends for the second one only");
    sim::check(then.connections <= 2);
    server.stop();
  };
  run_fibers(2, {[&] { sim::check(server.serve(listener).has_value()); }, client});
  sim::check(server.statistics().connections == 0);
}

TEST(http, a_request_that_begins_as_its_connection_is_chosen_is_not_lost_in_silence) {
  for (const bool early : {false, true}) {
    seconds = {};
    for (const auto strategy : {sim::strategy::random, sim::strategy::pct}) {
      const sim::result found =
          explore_and_print([early] { begins_as_it_is_chosen(early); }, {.strategy = strategy, .executions = 1000});
      EXPECT_TRUE(found) << found.text();
    }
    EXPECT_GT(seconds.answered, 0);
    EXPECT_GT(early ? seconds.told : seconds.closed, 0);
  }
}

}  // namespace
