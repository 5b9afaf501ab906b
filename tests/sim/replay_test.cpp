// A seed stands for one execution of one program, and its report is the same each time.
#include <gtest/gtest.h>
#include <pirn/fiber/runtime.hpp>
#include <pirn/fiber/scope.hpp>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/sim/explore.hpp>
#include <pirn/sync/mutex.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <regex>
#include <stdexcept>
#include <string>
#include <system_error>

#include "pirn/sim/thread.hpp"
#include "pirn/sim/var.hpp"
#include "sim/fibers.hpp"

using namespace pirn;
using sim::outcome;

namespace {

void lose_an_update() { pirn_test::lose_an_update(); }

TEST(replay, is_of_what_failed) {
  const sim::result found = sim::explore(lose_an_update);
  const sim::result again = sim::replay(lose_an_update, found.seed);
  EXPECT_EQ(again.what, found.what);
  EXPECT_EQ(again.message, found.message);
  EXPECT_EQ(again.trace, found.trace);
  EXPECT_EQ(again.executions, 1U);
  const sim::result other = sim::replay(lose_an_update, "2-0000-500.1");
  EXPECT_EQ(other.what, outcome::nondeterministic) << other.text();
  EXPECT_NE(other.message.find("seed"), std::string::npos) << other.text();
  EXPECT_THROW(static_cast<void>(sim::replay(lose_an_update, "1-7.1")), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(sim::replay(lose_an_update, "2-0000-7")), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(sim::replay(lose_an_update, "2-0000-7.1-5.1")), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(sim::replay(lose_an_update, "")), std::invalid_argument);
}

TEST(replay, is_of_the_program_that_failed) {
  const auto add_twice = [](bool mended) {
    return [mended] {
      sim::atomic<int> count(0);
      const auto add = [&] {
        count.store(count.load() + 1);
        if (mended) {  // all choices of the other program are there, and more
          static_cast<void>(count.load());
        }
      };
      {
        const sim::thread a(add);
        const sim::thread b(add);
      }
      sim::check(mended || count.load() == 2);
    };
  };
  const sim::result found = sim::explore(add_twice(false));
  EXPECT_EQ(found.what, outcome::assertion);
  EXPECT_TRUE(sim::explore(add_twice(true)));
  const sim::result other = sim::replay(add_twice(true), found.seed);
  EXPECT_EQ(other.what, outcome::nondeterministic) << other.text();
  EXPECT_NE(other.message.find("seed"), std::string::npos) << other.text();
}

TEST(replay, is_of_the_seed_of_the_environment_only) {
  const sim::result found = sim::explore(lose_an_update);
  setenv("PIRN_SIM_REPLAY", found.seed.c_str(), 1);
  const sim::result again = sim::explore(lose_an_update);
  setenv("PIRN_SIM_REPLAY", "nonsense", 1);
  try {
    static_cast<void>(sim::explore(lose_an_update));
    ADD_FAILURE() << "nonsense is taken for a seed";
  } catch (const std::invalid_argument& refused) {
    EXPECT_NE(std::string(refused.what()).find("PIRN_SIM_REPLAY"), std::string::npos) << refused.what();
  }
  unsetenv("PIRN_SIM_REPLAY");
  EXPECT_EQ(again.what, outcome::assertion);
  EXPECT_EQ(again.executions, 1U);
}

/// A trace without the addresses in it. Where a compiler's line table does not tell that the word of a mutex is pirn's,
/// a trace shows the word's value, which is the address of a fiber.
std::string without_addresses(const std::string& trace) {
  return std::regex_replace(trace, std::regex("[0-9]{11,}"), "ADDRESS");
}

TEST(replay, of_a_deadlock_is_the_same_to_the_letter) {
  const auto program = [] {
    runtime fibers({.workers = 2});
    mutex a, b;
    sim::atomic<bool> done = false;
    const auto both = [](mutex& first, mutex& second) {
      const std::lock_guard outer(first);
      const std::lock_guard inner(second);
    };
    fiber one = fibers.spawn([&] { both(a, b); }, {.worker = 0});
    fiber two = fibers.spawn([&] { both(b, a); }, {.worker = 1});
    fiber third = fibers.spawn(
        [&] {
          while (!done.load()) {
            static_cast<void>(this_fiber::sleep_for(std::chrono::seconds(1)));
          }
        },
        {.worker = 0});
    one.join();
    two.join();
    done = true;
    third.join();
  };
  const sim::result found = sim::explore(program);
  EXPECT_EQ(found.what, outcome::deadlock);
  const sim::result again = sim::replay(program, found.seed);
  EXPECT_EQ(again.what, found.what);
  EXPECT_EQ(again.message, found.message);
  EXPECT_EQ(without_addresses(again.trace), without_addresses(found.trace));
  EXPECT_EQ(again.state, found.state);
}

TEST(replay, of_what_takes_seconds_is_exact) {
  // A runtime that lives for more than a second looks for deadlocks.
  const auto program = [] {
    runtime fibers({.workers = 2});
    sim::atomic<int> count = 0;
    const auto add = [&] {
      static_cast<void>(this_fiber::sleep_for(std::chrono::seconds(2)));
      count.store(count.load() + 1);
    };
    fiber one = fibers.spawn(add, {.worker = 0});
    fiber two = fibers.spawn(add, {.worker = 1});
    one.join();
    two.join();
    sim::check(count.load() == 2, "an update is lost");
  };
  const sim::result expires = sim::explore(
      [] {
        runtime fibers({.workers = 2});
        fibers.run([] {
          scope within({.deadline = platform::now() + std::chrono::seconds(1)});
          within.spawn([] { static_cast<void>(this_fiber::sleep_for(std::chrono::hours(1))); }, {.worker = 1});
          within.join();
        });
      },
      {.executions = 6000});
  EXPECT_TRUE(expires) << expires.text();
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const sim::result found = sim::explore(program, {.strategy = sim::strategy::random, .seed = seed});
    EXPECT_EQ(found.what, outcome::assertion);
    EXPECT_EQ(found.message.find("again"), std::string::npos) << found.text();
    const sim::result again = sim::replay(program, found.seed);
    EXPECT_EQ(again.message, found.message);
    EXPECT_EQ(again.trace, found.trace);
  }
}

TEST(report, is_of_a_short_execution_also_where_a_framework_is_asked) {
  const sim::options options = {.strategy = sim::strategy::random, .failed = [] { return false; }};
  const sim::result found = sim::explore(lose_an_update, options);
  EXPECT_EQ(found.what, outcome::assertion);
  EXPECT_LE(std::count(found.seed.begin(), found.seed.end(), '.'), 2) << found.text();
}

TEST(report, says_which_fault_there_was) {
  const auto waits = [] {
    runtime fibers({.workers = 1});
    fibers.spawn([] { sim::check(this_fiber::sleep_for(std::chrono::seconds(1)).has_value()); }).join();
  };
  const sim::result stopped = sim::explore(waits, {.faults = {.stop = true}});
  EXPECT_NE(stopped.trace.find("is asked to stop (`faults::stop`), at replay_test.cpp"), std::string::npos)
      << stopped.text();
  const sim::result no_stack = sim::explore(waits, {.faults = {.spawn = true}});
  EXPECT_NE(no_stack.trace.find("no stack is available (`faults::spawn`), at replay_test.cpp"), std::string::npos)
      << no_stack.text();
}

TEST(report, tells_the_values_that_were_read_and_written) {
  const sim::result found = sim::explore([] {
    sim::var<int> number(0);
    sim::var<std::string> text("a");
    sim::var<float> share(0.5F);
    sim::atomic<bool> done(false);
    const sim::thread writer([&] {
      number = 5;
      text = "b";
      done.store(true);
    });
    while (!done.load()) {
    }
    static_cast<void>(text.get());
    number -= 9;
    const int before = number++;
    const int between = number--;
    sim::check(before == -4 && between == -3);
    share.edit() += 1;
    share = share + 0.25F;
    sim::check(number == 0);
  });
  for (const char* expected : {"write of word 0, to 5", "read of word 0, which is 5", "write of word 0, to -4",
                               "write of word 0, to -3", "write of word 1, at", "read of word 1, at",
                               "write of word 2, at", "read of word 2, which is 1.5", "write of word 2, to 1.75"}) {
    EXPECT_NE(found.trace.find(expected), std::string::npos) << expected << "\n" << found.text();
  }
}

TEST(report, tells_the_values_of_atomics_by_their_types) {
  enum class phase : std::uint8_t { none, first = 200 };
  struct tagged {
    std::uint16_t index, tag;
  };
  const sim::result found = sim::explore([] {
    sim::atomic<double> share(0.5);
    share.store(1.25);
    sim::atomic<short> count(0);
    count.fetch_sub(3);
    short expected = 7;
    count.compare_exchange_strong(expected, 1);
    sim::atomic<phase> now{};
    now.store(phase::first);
    sim::atomic<const int*> at(nullptr);
    at.store(at.load());
    sim::atomic<bool> done(false);
    done.exchange(true);
    sim::atomic<tagged> head{};
    head.store({0x12, 0xab});
    sim::check(false);
  });
  for (const char* expected : {"store of word 0, to 1.25", "change of word 1, to -3", "load of word 1, which is -3",
                               "store of word 2, to 200", "load of word 3, which is null", "store of word 3, to null",
                               "change of word 4, to true", "store of word 5, to 0xab0012"}) {
    EXPECT_NE(found.trace.find(expected), std::string::npos) << expected << "\n" << found.text();
  }
}

TEST(report, has_each_access_to_a_variable) {
  const sim::result found = sim::explore([] {
    sim::var<int> shared(0);
    mutex lock;
    sim::check((lock.lock(), shared = 7, lock.unlock(), static_cast<int>(shared)) != 7);
  });
  EXPECT_NE(found.trace.find("write of word"), std::string::npos) << found.text();
  EXPECT_NE(found.trace.find("which is 7"), std::string::npos) << found.text();
}

TEST(report, says_where_both_accesses_of_a_race_are) {
  const auto program = [] {
    runtime fibers({.workers = 2});
    sim::var<int> shared(0);
    fiber one = fibers.spawn([&] { shared = 1; }, {.name = "writer", .worker = 0});
    fiber two = fibers.spawn([&] { static_cast<void>(static_cast<int>(shared)); }, {.name = "reader", .worker = 1});
    one.join();
    two.join();
  };
  const sim::result found = sim::explore(program);
  EXPECT_EQ(found.what, outcome::data_race);
  for (const char* expected :
       {"a write by fiber 1 \"writer\" on worker 0, at replay_test.cpp:",
        "a read by fiber 2 \"reader\" on worker 1, at replay_test.cpp:", "to the same variable"}) {
    EXPECT_NE(found.message.find(expected), std::string::npos) << expected << "\n" << found.text();
  }
  EXPECT_EQ(sim::replay(program, found.seed).message, found.message);
}

TEST(report, says_that_there_is_no_exploration) {
  try {
    const runtime fibers({.workers = 1});
    ADD_FAILURE() << "it runs";
  } catch (const std::system_error& refused) {
    EXPECT_NE(std::string(refused.what()).find("sim::explore"), std::string::npos) << refused.what();
  }
}

}  // namespace
