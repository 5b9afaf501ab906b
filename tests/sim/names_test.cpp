// Programs that look names up: the whole resolver, with a table of names in place of its servers.
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/net/tcp_listener.hpp>
#include <pirn/sim/expert/names.hpp>
#include <pirn/sim/network.hpp>

#include <string>

#include "sim/together.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using pirn_test::expect_passes;
using pirn_test::run_fibers;
using pirn_test::run_together;
using sim::outcome;

namespace {

constexpr ip_address first = ip_address::v4({192, 0, 2, 1});
constexpr ip_address second = ip_address::v4({192, 0, 2, 2});
constexpr ip_address second_v6 = ip_address::v6({0x20, 0x01, 0x0d, 0xb8});
constexpr std::uint16_t port = 80;

sim::options bound_by(unsigned preemptions, sim::faults faults = {}) {
  return {.preemptions = preemptions, .faults = faults};
}

/// Runs `body` in a fiber beside a table of names.
void run_with(std::map<std::string, sim::names::host> names, const std::function<void(resolver&)>& body,
              const resolver::options& how = {}) {
  const sim::names known(std::move(names));
  resolver all(how);
  run_fibers(1, {[&] { body(all); }});
}

/// Returns the error of a look-up and the virtual time that it took.
std::pair<std::error_code, std::chrono::nanoseconds> look_up(resolver& by, std::string_view name,
                                                             time_limit deadline = never) {
  const auto begin = sim::elapsed();
  const auto found = by.look_up(name, deadline);
  return {found ? std::error_code() : found.error(), sim::elapsed() - begin};
}

}  // namespace

TEST(names, answers_are_those_of_the_table) {
  expect_passes(
      [] {
        run_with({{"www.example.org", {.addresses = {first, second_v6, second}, .texts = {"a", "b"}}},
                  {"_imap._tcp.example.org", {.services = {{"b", 2, 2, 0}, {"a", 1, 1, 0}}}},
                  {"failed", {.error = io_error::name_server_failed}},
                  {"short.example.net", {.addresses = {first}}}},
                 [](resolver& all) {
                   auto found = all.look_up("WWW.example.org.").value();
                   std::ranges::sort(found);
                   sim::check(found == std::vector{first, second, second_v6});
                   sim::check(all.texts("www.example.org").value() == std::vector<std::string>{"a", "b"});
                   sim::check(all.services("_imap._tcp.example.org").value().front().host == "a");
                   sim::check(all.services("www.example.org").error() == io_error::no_such_record);
                   sim::check(all.look_up("_imap._tcp.example.org").error() == io_error::no_such_record);
                   sim::check(all.look_up("other").error() == io_error::name_not_found);
                   sim::check(all.look_up("failed").error() == io_error::name_server_failed);
                   sim::check(all.look_up("short").value() == std::vector{first});
                   sim::check(all.look_up("192.0.2.9").has_value() && all.look_up("localhost").has_value());
                 },
                 {.search = {"example.net"}});
      },
      bound_by(0));
}

TEST(names, without_a_table_there_are_none) {
  expect_passes(
      [] {
        resolver all;
        run_fibers(1, {[&] { sim::check(all.look_up("www").error() == io_error::name_not_found); }});
        sim::check(resolver({.by_system = true}).look_up("localhost.localdomain").error() == io_error::name_not_found);
      },
      bound_by(0));
}

TEST(names, answers_take_their_time_and_are_kept) {
  expect_passes(
      [] {
        run_with({{"slow", {.addresses = {first}, .takes = 5ms, .v6_takes = 20ms, .time_to_live = 1s}}},
                 [](resolver& all) {
                   sim::check(look_up(all, "slow") == std::pair(std::error_code(), std::chrono::nanoseconds(20ms)));
                   sim::check(look_up(all, "slow").second == 0ms, "from the cache");
                   static_cast<void>(this_fiber::sleep_for(1s));
                   sim::check(look_up(all, "slow", 10ms) ==
                              std::pair(make_error_code(io_error::timed_out), std::chrono::nanoseconds(10ms)));
                   sim::check(all.counted().cached == 2 && all.counted().queries == 4);
                 });
        run_with({{"slow", {.addresses = {first}, .takes = 5ms, .v6_takes = 20ms}}},
                 [](resolver& all) {
                   sim::check(look_up(all, "slow", 10ms).first == io_error::timed_out);
                   sim::check(look_up(all, "slow") == std::pair(std::error_code(), std::chrono::nanoseconds(20ms)));
                 },
                 {.by_system = true});
      },
      bound_by(0));
}

TEST(names, an_answer_at_the_deadline_comes_before_it_or_after_it) {
  static int in_time, late;
  in_time = late = 0;
  expect_passes(
      [] {
        run_with({{"slow", {.addresses = {first}, .takes = 5ms}}}, [](resolver& all) {
          const std::error_code error = look_up(all, "slow", 5ms).first;
          sim::check(!error || error == io_error::timed_out);
          ++(error ? late : in_time);
        });
      },
      bound_by(0));
  EXPECT_TRUE(in_time > 0 && late > 0);
}

TEST(names, a_quick_answer_does_not_wait_for_a_slow_one) {
  expect_passes(
      [] {
        const sim::names known({{"slow", {.addresses = {first}, .takes = 9ms}}, {"www", {.addresses = {first}}}});
        resolver all;
        run_fibers(1, {[&] { sim::check(!look_up(all, "slow").first); },
                       [&] { sim::check(look_up(all, "www").second < 9ms); }});
      },
      bound_by(1));
}

TEST(names, equal_questions_are_shared) {
  expect_passes(
      [] {
        const sim::names known({{"www", {.addresses = {first}, .takes = 1ms}}});
        resolver all;
        const auto ask = [&] { sim::check(all.look_up("www").has_value()); };
        run_together({ask, ask}, {.migratable = true});
        sim::check(all.counted().queries == 2 && all.counted().shared + all.counted().cached == 2);
      },
      bound_by(1));
}

TEST(names, a_silent_server_is_asked_again) {
  static bool once;
  once = false;
  const auto program = [] {
    run_with({{"www", {.addresses = {first}, .v6_takes = 1ms}}}, [](resolver& all) {
      const auto [error, took] = look_up(all, "www");
      sim::check(!error && (took == 1ms || took == 2s || took == 2001ms));
      once = once || took >= 2s;
    });
  };
  expect_passes(program, bound_by(0, {.silence = true}));
  EXPECT_TRUE(once);
  // Without another try it is an error, also for those whose table says so.
  const auto found = sim::explore(
      [] {
        run_with({{"www", {.addresses = {first}}}}, [](resolver& all) { sim::check(!look_up(all, "www").first); },
                 {.tries = 1});
      },
      bound_by(0, {.silence = true, .max_per_execution = 2}));
  EXPECT_EQ(found.what, outcome::assertion);
  EXPECT_NE(found.trace.find("faults::silence"), std::string::npos) << found.text();
  expect_passes(
      [] {
        run_with({{"www", {.error = io_error::name_server_silent}}, {"slow", {.addresses = {first}, .takes = 60s}}},
                 [](resolver& all) {
                   const std::pair silent(make_error_code(io_error::name_server_silent), std::chrono::nanoseconds(3s));
                   sim::check(look_up(all, "www") == silent && look_up(all, "slow") == silent);
                 },
                 {.timeout = 1s, .tries = 2});
      },
      bound_by(0));
}

TEST(names, a_stop_ends_a_look_up) {
  for (const bool by_system : {false, true}) {
    expect_passes(
        [by_system] {
          const sim::names known({{"www", {.addresses = {first}, .takes = 5s}}});
          resolver all({.by_system = by_system});
          std::vector<fiber> fibers;
          run_together({[&] {
                          const auto [error, took] = look_up(all, "www");
                          sim::check(error == io_error::stopped && took <= 1ms);
                        },
                        [&] {
                          static_cast<void>(this_fiber::sleep_for(1ms));
                          fibers[0].request_stop();
                        }},
                       {.fibers = &fibers});
        },
        bound_by(1));
  }
}

TEST(names, of_two_tables_the_second_is_refused) {
  const auto found = sim::explore([] {
    const sim::names one({});
    const sim::names other({});
  });
  EXPECT_EQ(found.what, outcome::aborted) << found.text();
}

/// A client that connects by name, to two addresses of which one refuses, beside a stop and a deadline.
TEST(names, a_connection_by_name_leaks_nothing) {
  for (const std::chrono::nanoseconds v6_takes : {1ms, 70ms}) {  // before the attempt with IPv4, and after it
    static int connected, stopped, expired;
    connected = stopped = expired = 0;
    const auto program = [v6_takes](std::chrono::nanoseconds stops_at) {
      const sim::names known({{"www", {.addresses = {first, second_v6}, .takes = 1ms, .v6_takes = v6_takes}}});
      resolver all;
      std::vector<fiber> fibers;
      tcp_listener listener = tcp_listener::listen({second_v6, port}).value();
      run_together({[&] {
                      const auto made = all.connect("www", port, v6_takes + 1ms);
                      sim::check(sim::elapsed() <= v6_takes + 1ms, "the deadline holds");
                      sim::check(!made || made->remote_endpoint().value().address == second_v6);
                      connected += made ? 1 : 0;
                      stopped += !made && made.error() == io_error::stopped ? 1 : 0;
                      expired += !made && made.error() == io_error::timed_out ? 1 : 0;
                      sim::check(made || made.error() == io_error::stopped || made.error() == io_error::timed_out,
                                 "connected, or a clear error");
                    },
                    [&] {
                      static_cast<void>(this_fiber::sleep_for(stops_at));
                      fibers[0].request_stop();
                    }},
                   {.fibers = &fibers});
      while (auto accepted = listener.accept(pirn_test::soon())) {
        char byte;
        sim::check(accepted->read(&byte, 1, 1s).value_or(0) == 0, "a connection is left open");
      }
    };
    for (const auto stops_at : {v6_takes, v6_takes + 1ms}) {
      expect_passes([=] { program(stops_at); }, bound_by(1, {.silence = true}));
    }
    EXPECT_TRUE(connected > 0 && stopped > 0 && expired > 0) << connected << ' ' << stopped << ' ' << expired;
  }
}

TEST(names, a_connection_that_fails_says_why) {
  expect_passes(
      [] {
        run_with({{"www", {.addresses = {first, second_v6}}}, {"failed", {.error = io_error::name_server_failed}}},
                 [](resolver& all) {
                   const auto refused = all.connect("www", port);
                   sim::check(refused.error() == std::errc::connection_refused && refused.error().attempts.size() == 2);
                   sim::check(all.connect("failed", port).error() == io_error::name_server_failed);
                   sim::check(all.connect("other", port).error() == io_error::name_not_found);
                 });
      },
      bound_by(1));
}

TEST(names, a_connection_goes_to_the_address_that_accepts) {
  for (const std::chrono::nanoseconds v6_takes : {0ns, 20'000'000ns, 70'000'000ns, 10'000'000'000ns}) {
    expect_passes(
        [v6_takes] {
          tcp_listener listener = tcp_listener::listen({second, port}).value();
          run_with({{"www", {.addresses = {first, second, second_v6}, .v6_takes = v6_takes}}}, [](resolver& all) {
            sim::check(all.connect("www", port).value().remote_endpoint().value().address == second);
            sim::check(sim::elapsed() <= 50ms, "does not wait for IPv6 for longer");
          });
        },
        bound_by(1));
  }
}
