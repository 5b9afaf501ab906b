// Programs that fibers start, in every order of their ends, waits, stops, deadlines, signals and destructions, with
// either half of an engine. No program stays a zombie, which sim::programs reports as a leak.
#include <gtest/gtest.h>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/io/process.hpp>
#include <pirn/sim/programs.hpp>

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sim/fibers.hpp"

using namespace pirn;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

const sim::options one_preemption = {.preemptions = 1};

void expect_passes_with_both(const std::function<void(engine_kind)>& program, const sim::options& options) {
  for (const engine_kind each : {engine_kind::uring, engine_kind::epoll}) {
    pirn_test::expect_passes([&] { program(each); }, options);
  }
}

/// A program that ends at once, and one that runs until it is killed.
int seven(const sim::programs::call&) { return 7; }
int seven_after_a_while(const sim::programs::call&) {
  std::this_thread::sleep_for(1ms);
  return 7;
}
int reads_its_input(const sim::programs::call& with) {
  char got[8];
  for (auto count = with.input.read(got, sizeof got); count && *count != 0; count = with.input.read(got, sizeof got)) {
    if (!with.output.write(got, *count)) {
      return 1;
    }
  }
  return 0;
}

process started(const char* name) {
  return process::spawn(words{name}, {.input = process::source::pipe(), .output = process::source::pipe()}).value();
}

bool is_seven(const result<process::status>& found) { return found && found->exit_code == 7 && found->signal == 0; }

TEST(process, a_wait_sees_the_end_whenever_it_comes) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::programs all({{"seven", seven}});
        pirn_test::run_fibers({.workers = 1, .engine = by}, {[] {
                                process p = started("seven");
                                sim::check(is_seven(p.wait()) && is_seven(p.wait()));
                                sim::check(p.kill().error() == std::errc::no_such_process);
                              }});
      },
      one_preemption);
}

TEST(process, a_stop_beside_the_end) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::programs all({{"seven", seven}});
        pirn_test::run_beside(
            by,
            [] {
              auto p = process::spawn(words{"seven"}, {});
              const auto found = p ? p->wait() : fail(p.error().code);
              sim::check(is_seven(found) || found.error() == io_error::stopped);
            },
            [](fiber& waiter) { waiter.request_stop(); });
      },
      {.preemptions = 0});
}

TEST(process, a_deadline_beside_the_end) {
  int ended = 0;
  int killed = 0;
  expect_passes_with_both(
      [&](engine_kind by) {
        sim::programs all({{"seven", seven_after_a_while}});
        pirn_test::run_fibers({.workers = 1, .engine = by}, {[&] {
                                const time_point deadline = clock::now() + 1ms;
                                process p = started("seven");
                                const auto found = p.wait_or_kill(deadline);
                                sim::check(is_seven(found) || found.value().signal == SIGKILL);
                                ++(is_seven(found) ? ended : killed);
                              }});
      },
      one_preemption);
  EXPECT_GT(ended, 0);
  EXPECT_GT(killed, 0);
}

// It looks for a close elsewhere every 50 ms, and finds the program running.
TEST(process, a_plain_thread_waits_through_its_looks) {
  pirn_test::expect_passes(
      [] {
        sim::programs all({{"late", [](const sim::programs::call&) {
                              std::this_thread::sleep_for(120ms);
                              return 7;
                            }}});
        process p = started("late");
        sim::check(is_seven(p.wait()));
      },
      {.preemptions = 0});
}

TEST(process, a_signal_of_another_fiber_beside_the_end_and_the_wait) {
  for (const bool group : {false, true}) {
    expect_passes_with_both(
        [group](engine_kind by) {
          sim::programs all({{"seven", seven}});
          std::optional<process> p;
          bool hit = false;
          result<process::status> found;
          {
            std::optional<sim::one_schedule> apart(std::in_place);
            runtime both({.workers = 2, .engine = by});
            p = both.run([&] { return process::spawn(words{"seven"}, {.own_group = group}).value(); });
            fiber waiter = both.spawn([&] { found = p->wait(); }, {.worker = 0});
            fiber killer = both.spawn(
                [&] {
                  const auto sent = p->kill();
                  sim::check(sent || sent.error() == std::errc::no_such_process);
                  hit = sent.has_value();
                },
                {.worker = 1});
            apart.reset();
            waiter.join();
            killer.join();
            apart.emplace();
            p.reset();
          }
          sim::check(is_seven(found) || (hit && found.value().signal == SIGTERM));
        },
        one_preemption);
  }
}

TEST(process, that_several_wait_for_tells_each_how_it_ended) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::programs all({{"seven", seven}});
        std::optional<process> p;
        result<process::status> found[2];
        {
          std::optional<sim::one_schedule> apart(std::in_place);
          runtime both({.workers = 2, .engine = by});
          p = both.run([] { return process::spawn(words{"seven"}, {}).value(); });
          fiber one = both.spawn([&] { found[0] = p->wait(); }, {.worker = 0});
          fiber two = both.spawn([&] { found[1] = p->wait(); }, {.worker = 1});
          apart.reset();
          one.join();
          two.join();
          apart.emplace();
          p.reset();
        }
        sim::check(is_seven(found[0]) && is_seven(found[1]));
      },
      one_preemption);
}

TEST(process, that_one_kills_and_another_waits_for_tells_both) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::programs all({{"cat", reads_its_input}});
        process p;
        pirn_test::run_fibers(
            {.workers = 1, .engine = by}, {[&] {
              p = process::spawn(words{"cat"}, {.input = process::source::pipe(), .own_group = true}).value();
              fiber waits = spawn([&] { sim::check(p.wait().value().signal == SIGKILL); });
              sim::check(p.wait_or_kill(platform::now() + 1ms).value().signal == SIGKILL);
              waits.join();
            }});
      },
      one_preemption);
}

TEST(process, that_is_dropped_has_ended) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::programs all({{"cat", reads_its_input}});
        pirn_test::run_fibers({.workers = 1, .engine = by}, {[] {
                                process p = started("cat");
                                p = process();
                              }});
      },
      {.preemptions = 0});
}

TEST(process, pipes_carry_all_and_then_the_end) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::programs all({{"cat", reads_its_input}});
        pirn_test::run_fibers({.workers = 1, .engine = by}, {[] {
                                process p = started("cat");
                                sim::check(p.input.write("hello, world").has_value());
                                p.input.close();
                                std::string got;
                                char part[8];
                                for (auto count = p.output.read(part, sizeof part).value(); count != 0;
                                     count = p.output.read(part, sizeof part).value()) {
                                  got.append(part, count);
                                }
                                sim::check(got == "hello, world");
                                sim::check(p.wait().value().success());
                              }});
      },
      {.preemptions = 0});
}

TEST(process, that_is_killed_ends_its_pipes) {
  expect_passes_with_both(
      [](engine_kind by) {
        sim::programs all({{"cat", reads_its_input}});
        pirn_test::run_fibers({.workers = 1, .engine = by}, {[] {
                                process p = started("cat");
                                p.kill(SIGCONT).value();
                                p.kill().value();
                                char got[8];
                                sim::check(p.output.read(got, sizeof got).value() == 0);
                                sim::check(p.wait().value().signal == SIGTERM);
                              }});
      },
      one_preemption);
}

TEST(process, that_does_not_exist_is_named) {
  expect_passes_with_both(
      [](engine_kind by) {
        const auto fails = [] {
          sim::check(process::spawn(words{"cat"}, {}).error().message() == "start cat: No such file or directory");
        };
        pirn_test::run_fibers({.workers = 1, .engine = by}, {fails});
        sim::programs all({{"seven", seven}});
        pirn_test::run_fibers({.workers = 1, .engine = by}, {fails});
      },
      {.preemptions = 0});
}

TEST(process, that_nobody_waits_for_is_a_leak) {
  const sim::result found = sim::explore(
      [] {
        sim::programs all({{"seven", seven}});
        runtime by({.workers = 1});
        new process(by.run([] { return started("seven"); }));
      },
      {.preemptions = 0});
  EXPECT_EQ(found.what, sim::outcome::leak);
  EXPECT_NE(found.text().find("a program was not waited for: seven"), std::string::npos) << found.text();
}

}  // namespace
