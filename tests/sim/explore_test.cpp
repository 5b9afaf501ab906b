// The failures that an exploration finds, and its reports of them.
#include "pirn/sim/explore.hpp"

#include <gtest/gtest.h>
#include <pirn/fiber/runtime.hpp>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/sync/condition_variable.hpp>
#include <pirn/sync/event.hpp>
#include <pirn/sync/mutex.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "pirn/sim/thread.hpp"
#include "pirn/sim/var.hpp"
#include "sim/fibers.hpp"

using namespace pirn;
using sim::outcome;

namespace {

void lose_an_update() { pirn_test::lose_an_update(); }

TEST(explore, finds_a_lost_update_by_every_strategy) {
  for (const auto strategy : {sim::strategy::exhaustive, sim::strategy::random, sim::strategy::pct}) {
    const sim::result found = sim::explore(lose_an_update, {.strategy = strategy});
    EXPECT_EQ(found.what, outcome::assertion);
    EXPECT_NE(found.message.find("an update is lost"), std::string::npos) << found.text();
    EXPECT_NE(found.message.find("explore_test.cpp:"), std::string::npos) << found.text();
    EXPECT_NE(found.trace.find("thread 1: load of word 0, which is 0"), std::string::npos) << found.text();
    EXPECT_NE(found.text().find("PIRN_SIM_REPLAY=" + found.seed), std::string::npos);
    // One switch at the wrong moment is enough, however the failure was found.
    EXPECT_LE(std::count(found.seed.begin(), found.seed.end(), '.'), 2) << found.text();
  }
}

TEST(explore, is_alone_in_the_process) {
  const auto refused = [] {
    try {
      static_cast<void>(sim::explore([] {}));
    } catch (const std::logic_error& why) {
      return std::string(why.what());
    }
    return std::string();
  };
  std::string inside, beside;
  const auto start_beside = [&] {
    std::thread([&] { beside = refused(); }).join();
    return false;
  };
  const sim::result found = sim::explore([&] { inside = refused(); }, {.failed = start_beside});
  EXPECT_TRUE(found) << found.text();
  for (const std::string& each : {inside, beside}) {
    EXPECT_EQ(each, "pirn: an exploration begins inside another one, or at the same time on another thread");
  }
}

TEST(explore, has_few_choices_first) {
  const auto program = [] {  // it has millions of executions
    sim::var<int> data = 0;
    sim::atomic<bool> ready = false;
    sim::atomic<int> others[3] = {0, 0, 0};
    const auto use = [&] {
      for (int i = 0; i < 6; ++i) {
        for (auto& each : others) {
          each.fetch_add(each.load(std::memory_order_relaxed), std::memory_order_relaxed);
        }
      }
    };
    sim::thread writer([&] {
      data = 1;
      ready.store(true, std::memory_order_relaxed);
      use();
    });
    use();
    if (ready.load(std::memory_order_acquire)) {
      static_cast<void>(static_cast<int>(data));
    }
    use();
  };
  for (const bool stale : {false, true}) {
    const sim::result found = sim::explore(program, {.stale_reads = stale, .executions = 500});
    EXPECT_EQ(found.what, outcome::data_race) << found.text();
  }
}

TEST(explore, says_that_a_failure_does_not_come_again) {
  int executions = 0;
  const sim::result found = sim::explore([&] { sim::check(++executions != 3); }, {.strategy = sim::strategy::random});
  EXPECT_EQ(found.what, outcome::assertion);
  EXPECT_NE(found.message.find("repeated under the same schedule it did not fail"), std::string::npos) << found.text();
  executions = 0;
  const sim::result other = sim::explore(
      [&] {
        sim::check(++executions != 3);
        executions < 3 ? void() : throw std::runtime_error("what came instead");
      },
      {.strategy = sim::strategy::random});
  EXPECT_NE(other.message.find("it failed differently (exception: what came instead)"), std::string::npos)
      << other.text();
}

TEST(explore, tells_of_every_kind_of_failure) {
  const auto kind = [](auto program, const sim::options& options = {}) {
    const sim::result found = sim::explore(program, options);
    EXPECT_FALSE(found.text().empty());
    return found.what;
  };
  EXPECT_EQ(kind([] {}), outcome::passed);
  EXPECT_EQ(kind([] { sim::check(false); }), outcome::assertion);
  EXPECT_EQ(kind([] { throw std::runtime_error("of the program"); }), outcome::exception);
  EXPECT_EQ(kind([] { sim::thread([] { throw 7; }).join(); }), outcome::exception);
  EXPECT_EQ(kind([] { std::abort(); }), outcome::aborted);
  EXPECT_EQ(kind([] { *static_cast<volatile int*>(nullptr) = 1; }), outcome::aborted);
  EXPECT_EQ(kind([] {
              sim::atomic<int> never(0);
              while (never.load() == 0) {
              }
            }),
            outcome::no_end);
  EXPECT_EQ(kind([] {
              const runtime fibers({.workers = 1});
              event never;
              never.wait().value();
            }),
            outcome::deadlock);
  EXPECT_EQ(kind([] { static_cast<void>(default_stack_pool().allocate(default_stack_size)); }), outcome::leak);
  EXPECT_EQ(kind([] { new sim::thread([] {}); }), outcome::leak);
}

TEST(explore, everybody_has_turns) {
  const auto spin = [](bool ends) {
    return [ends] {
      sim::atomic<int> flag(0);
      const sim::thread setter([&] { flag.store(ends ? 1 : 2); });
      while (flag.load() != 1) {
      }
    };
  };
  EXPECT_TRUE(sim::explore(spin(true), {.preemptions = 0, .fairness = 100}));
  const sim::result found = sim::explore(spin(false), {.preemptions = 0, .steps = 10'000, .fairness = 100});
  EXPECT_EQ(found.what, outcome::no_end) << found.text();
}

TEST(explore, a_trace_without_an_end_is_cut_short) {
  const sim::result found = sim::explore(
      [] {
        pirn_test::run_fibers(1, {[] {
                                for (;;) {
                                  this_fiber::sleep_for(std::chrono::seconds(1)).value();
                                }
                              }});
      },
      {.steps = 20'000});
  EXPECT_EQ(found.what, outcome::no_end) << found.text();
  EXPECT_NE(found.trace.find("more lines ..."), std::string::npos) << found.text();
  EXPECT_LT(std::count(found.trace.begin(), found.trace.end(), '\n'), 250);
}

TEST(explore, sees_fibers_that_wait_for_each_other_while_others_go_on) {
  for (const bool sleeps : {true, false}) {
    const auto stuck_beside_another = [sleeps] {
      mutex first;
      mutex second;
      event both_held;
      const auto take = [&](mutex& mine, mutex& other) {
        const std::lock_guard one(mine);
        if (&mine == &second) {
          both_held.set();
        }
        both_held.wait().value();
        const std::lock_guard two(other);
      };
      const auto go_on = [sleeps] {
        for (;;) {
          sleeps ? static_cast<void>(this_fiber::sleep_for(std::chrono::seconds(1))) : this_fiber::yield();
        }
      };
      pirn_test::run_fibers(2, {[&] { take(first, second); }, [&] { take(second, first); }, go_on});
    };
    const sim::result found = sim::explore(stuck_beside_another, {.preemptions = 0, .steps = 20'000});
    EXPECT_EQ(found.what, outcome::deadlock) << found.text();
    EXPECT_NE(found.message.find("each of which waits for the next one"), std::string::npos) << found.text();
    EXPECT_EQ(found.steps < 2'000, sleeps)
        << found.steps << " steps: before time passes, that is, or at the end of them";
  }
}

TEST(explore, goes_on_after_a_failure_as_if_there_had_been_none) {
  for (int i = 0; i < 3; ++i) {
    const auto stuck = [] {
      mutex first;
      mutex second;
      pirn_test::run_fibers(2, {[&] {
                                  const std::lock_guard one(first);
                                  const std::lock_guard other(second);
                                },
                                [&] {
                                  const std::lock_guard one(second);
                                  const std::lock_guard other(first);
                                }});
    };
    const sim::result found = sim::explore(stuck);
    EXPECT_EQ(found.what, outcome::deadlock) << found.text();
    EXPECT_NE(found.state.find("waiting for mutex at"), std::string::npos) << found.text();
    EXPECT_NE(found.state.find("held by fiber 1\n"), std::string::npos) << found.text();
    EXPECT_NE(found.state.find("held by fiber 2\n"), std::string::npos) << found.text();
    EXPECT_TRUE(sim::explore([] { pirn_test::run_fibers(1, {[] {}}); }));
  }
}

TEST(explore, asks_the_test_framework) {
  int asked = 0;
  const sim::result found = sim::explore([] {}, {.failed = [&] { return ++asked == 2; }});
  EXPECT_EQ(found.what, outcome::assertion);
  EXPECT_THROW(static_cast<void>(sim::explore([] {}, {.failed = [] { return true; }})), std::logic_error);
}

TEST(explore, finds_a_program_that_depends_on_something_else) {
  int run = 0;
  const sim::result found = sim::explore([&] {
    sim::atomic<int> word(0);
    const int steps = ++run;
    const sim::thread a([&] { word.fetch_add(1); });
    const sim::thread b([&] {
      for (int i = 0; i < 3 - steps % 3; ++i) {
        word.fetch_add(1);
      }
    });
    for (int i = 0; i < steps % 3; ++i) {
      word.fetch_add(1);
    }
  });
  EXPECT_EQ(found.what, outcome::nondeterministic) << found.text();
}

TEST(explore, finds_a_value_that_depends_on_something_else) {
  int run = 0;
  const sim::result found = sim::explore(
      [&] {
        sim::atomic<int> word(0);
        const int stores = ++run;
        const sim::thread a([&] {
          const sim::one_schedule apart;
          for (int i = 1; i <= stores; ++i) {
            word.store(i, platform::memory_order_relaxed);
          }
        });
        const sim::thread b([&] { static_cast<void>(word.load(platform::memory_order_relaxed)); });
      },
      {.stale_reads = true});
  EXPECT_EQ(found.what, outcome::nondeterministic) << found.text();
}

TEST(explore, any_sleeper_may_be_the_one_that_is_woken) {
  std::set<std::string> seen;
  const sim::result found = sim::explore([&] {
    platform::atomic<std::uint32_t> word(0);
    sim::atomic<int> asleep(0);
    std::string order;
    {
      const auto sleep = [&](char name) {
        asleep.fetch_add(1);
        while (word.load() == 0 && platform::futex_wait(word, 0, platform::never)) {
        }
        order += name;
        platform::futex_wake(&word, 1);
      };
      const sim::thread a([&] { sleep('a'); });
      const sim::thread b([&] { sleep('b'); });
      const sim::thread c([&] { sleep('c'); });
      this_fiber::sleep_for(std::chrono::seconds(1)).value();
      const sim::one_schedule apart;
      word.store(1);
      platform::futex_wake(&word, 1);
    }
    seen.insert(order);
  });
  EXPECT_TRUE(found && found.complete) << found.text();
  EXPECT_EQ(seen, (std::set<std::string>{"abc", "acb", "bac", "bca", "cab", "cba"}));
}

template <class Lock>
sim::result locks_by_addresses() {
  return sim::explore([] {
    std::vector<std::unique_ptr<Lock>> all;  // destroyed in this order too
    for (int i = 0; i < 3; ++i) {
      all.push_back(std::make_unique<Lock>());
    }
    const auto lock_both = [](Lock& a, Lock& b) {
      const std::lock_guard first(&a < &b ? a : b);
      const std::lock_guard second(&a < &b ? b : a);
    };
    const auto use = [&](int mine) {
      lock_both(*all[mine], *all[1]);
      all[mine].reset();  // in an order that the schedule decides
    };
    const sim::thread one([&] { use(0); });
    const sim::thread other([&] { use(2); });
  });
}

TEST(explore, addresses_depend_on_the_schedule_only) {
  struct alignas(64) aligned : mutex {};
  for (const sim::result& found : {locks_by_addresses<mutex>(), locks_by_addresses<aligned>()}) {
    EXPECT_TRUE(found) << found.text();
  }
}

TEST(explore, what_it_keeps_itself_does_not_change_addresses) {
  const auto reuse = [] {
    sim::atomic<int> steps(0);
    std::unique_ptr<int> mine;
    std::uintptr_t former = 0;
    const sim::thread one([&] {
      {
        const auto gone = std::make_unique<int>(1);
        former = reinterpret_cast<std::uintptr_t>(gone.get());
      }
      steps.fetch_add(1);
    });
    const sim::thread other([&] {
      mine = std::make_unique<int>(2);
      sim::check(former != reinterpret_cast<std::uintptr_t>(mine.get()) || steps.load() != 0,
                 "in the same place, and in the middle of the other");
      steps.fetch_add(1);
    });
  };
  for (const auto strategy : {sim::strategy::exhaustive, sim::strategy::random}) {
    const sim::result found = sim::explore(reuse, {.strategy = strategy});
    EXPECT_EQ(found.what, outcome::assertion) << found.text();
    EXPECT_EQ(sim::replay(reuse, found.seed).what, outcome::assertion);
  }
}

TEST(explore, addresses_of_stacks_depend_on_the_schedule_only) {
  const auto in_order = [] {
    std::vector<const void*> at(3);
    const auto look = [&at](std::size_t self) {
      return [&at, self] {
        const char local = 0;
        at[self] = &local;
        this_fiber::yield();
        static_cast<void>(this_fiber::sleep_for(std::chrono::milliseconds(1)));
      };
    };
    pirn_test::run_fibers(1, {look(0), look(1), look(2)});
    sim::check(std::ranges::is_sorted(at, std::less<>()), "where the stacks of earlier executions were");
  };
  for (int i = 0; i < 2; ++i) {
    const sim::result found = sim::explore(in_order);
    EXPECT_TRUE(found) << found.text();
    EXPECT_GT(found.executions, 1U);
    EXPECT_EQ(sim::explore([] { new sim::thread([] {}); }).what, outcome::leak) << "and no failure changes it";
  }
}

TEST(explore, time_is_virtual) {
  const auto began = std::chrono::steady_clock::now();
  const sim::result found = sim::explore([] {
    std::vector<int> order;
    const auto sleep = [&](int hours) {
      return [&order, hours] {
        this_fiber::sleep_for(std::chrono::hours(hours)).value();
        order.push_back(hours);
      };
    };
    pirn_test::run_fibers(1, {sleep(3), sleep(1), sleep(2)});
    sim::check(order == std::vector{1, 2, 3});
    sim::check(sim::elapsed() >= std::chrono::hours(3));
  });
  EXPECT_TRUE(found) << found.text();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::minutes(1));
}

TEST(explore, time_passes_while_somebody_yields_and_looks) {
  const sim::result found = sim::explore(
      [] {
        sim::atomic<bool> done(false);
        pirn_test::run_fibers(2, {[&] {
                                    while (!done.load()) {
                                      this_fiber::yield();
                                    }
                                  },
                                  [&] {
                                    for (int i = 0; i < 3; ++i) {
                                      this_fiber::sleep_for(std::chrono::seconds(1)).value();
                                    }
                                    done.store(true);
                                  }});
        sim::check(sim::elapsed() >= std::chrono::seconds(3));
        sim::check(sim::elapsed() < std::chrono::seconds(4), "and not much further than somebody waits for");
      },
      {.preemptions = 0, .executions = 100});
  EXPECT_TRUE(found) << found.text();
}

TEST(explore, a_yield_may_do_nothing) {
  for (const auto strategy : {sim::strategy::exhaustive, sim::strategy::random, sim::strategy::pct}) {
    std::set<int> seen;
    const sim::result found = sim::explore(
        [&] {
          sim::atomic<int> word(0);
          const sim::thread other([&] { word = 1; });
          this_fiber::yield();
          seen.insert(word.load());
        },
        {.strategy = strategy, .executions = 100});
    EXPECT_TRUE(found) << found.text();
    EXPECT_EQ(seen, (std::set{0, 1}));
  }
}

TEST(explore, a_budget_ends_it) {
  const sim::result found = sim::explore(
      [] {
        mutex lock;
        const auto go_in = [&] {
          lock.lock();
          lock.unlock();
        };
        pirn_test::run_fibers(3, {go_in, go_in, go_in});
      },
      {.preemptions = sim::no_bound, .budget = std::chrono::milliseconds(300)});
  EXPECT_TRUE(found) << found.text();
  EXPECT_FALSE(found.complete);
  EXPECT_LT(found.seconds, 30);
}

TEST(explore, a_budget_ends_it_after_the_first_that_takes_longer) {
  const sim::result found = sim::explore(
      [] {
        sim::atomic<int> word(0);
        const sim::thread other([&] { word.store(1); });
        word.store(2);
        for (volatile int i = 0; i < 5'000'000;) {
          i = i + 1;
        }
      },
      {.budget = std::chrono::milliseconds(1)});
  EXPECT_EQ(found.executions, 1) << found.text();
}

TEST(explore, knows_that_the_last_execution_allowed_was_the_last) {
  const auto program = [] {
    sim::atomic<int> word(0);
    const sim::thread one([&] { word.fetch_add(1); });
    const sim::thread other([&] { word.fetch_add(2); });
  };
  const std::uint64_t all = sim::explore(program).executions;
  EXPECT_TRUE(sim::explore(program, {.executions = all}).complete);
  EXPECT_FALSE(sim::explore(program, {.executions = all - 1}).complete);
}

TEST(explore, lets_spawns_fail) {
  int refused = 0;
  const sim::result found = sim::explore(
      [&] {
        pirn_test::run_fibers(1, {[&] {
                                auto made = try_spawn([] {});
                                refused += made ? 0 : 1;
                              }});
      },
      {.faults = {.spawn = true}, .failed = [] { return false; }});
  EXPECT_GT(refused, 0);
  EXPECT_EQ(found.what, outcome::exception) << "the first spawn is not checked: " << found.text();
}

TEST(explore, wakes_for_nothing_where_that_is_wanted) {
  const auto once = [] {
    sim::atomic<std::uint32_t> ready(0);
    const sim::thread setter([&] {
      ready.store(1);
      platform::futex_wake(&ready, 1);
    });
    if (ready.load() == 0) {
      platform::futex_wait(ready, 0);
    }
    sim::check(ready.load() == 1, "woken without a reason");
  };
  EXPECT_TRUE(sim::explore(once));
  EXPECT_EQ(sim::explore(once, {.faults = {.spurious = true}}).what, outcome::assertion);
}

TEST(explore, stops_at_every_wait) {
  std::set<std::string> ends;
  const sim::result found = sim::explore(
      [&] {
        std::string wakes;
        event first;
        event second;
        pirn_test::run_fibers(1, {[&] {
                                    wakes += first.wait() ? "1" : "-";
                                    wakes += second.wait() ? "2" : "-";
                                  },
                                  [&] {
                                    first.set();
                                    static_cast<void>(this_fiber::sleep_for(std::chrono::seconds(1)));
                                    second.set();
                                  }});
        ends.insert(wakes);
      },
      {.faults = {.stop = true}});
  EXPECT_TRUE(found) << found.text();
  EXPECT_EQ(ends, (std::set<std::string>{"12", "1-", "--"}));
}

TEST(explore, ends_a_time_slice_at_every_safe_point) {
  std::set<std::string> orders;
  const sim::result found = sim::explore(
      [&] {
        std::string order;
        pirn_test::run_fibers(1, {[&] {
                                    order += 'a';
                                    this_fiber::preemption_point();
                                    order += 'b';
                                    this_fiber::preemption_point();
                                    order += 'c';
                                  },
                                  [&] { order += '1'; }});
        orders.insert(order);
      },
      {.preemptions = 0, .faults = {.preempt = true}});
  EXPECT_TRUE(found) << found.text();
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(orders, (std::set<std::string>{"abc1", "a1bc", "ab1c"}));
}

TEST(explore, finds_who_waits_for_ever_while_others_run) {
  const sim::result found = sim::explore([] {
    event never;
    pirn_test::run_fibers(2, {[&] { never.wait().value(); },
                              [] {
                                for (int i = 0; i < 3; ++i) {
                                  this_fiber::sleep_for(std::chrono::seconds(1)).value();
                                }
                              }});
  });
  EXPECT_EQ(found.what, outcome::deadlock) << found.text();
  EXPECT_NE(found.state.find("waiting for event"), std::string::npos) << found.text();
}

TEST(explore, a_sleeping_worker_is_woken_with_stale_reads_too) {
  const sim::result found = sim::explore(
      [] {
        runtime fibers({.workers = 2});
        fibers.spawn([] {}, {.worker = spawn_options::any_worker}).detach();
      },
      {.preemptions = 1, .stale_reads = true, .executions = 1000});
  EXPECT_TRUE(found) << found.text();
}

TEST(explore, sixteen_threads_at_a_time) {
  EXPECT_TRUE(sim::explore(
      [] {
        sim::var<int> sum(0);
        for (int i = 0; i < 40; ++i) {
          sim::thread([&] { sum += 1; }).join();
        }
        sim::check(sum == 40);
        for (int i = 0; i < 9; ++i) {
          runtime fibers({.workers = 2});
          fibers.spawn([&] { sum += 1; }).join();
        }
      },
      {.executions = 20}));
  const auto several = [](std::size_t count) {
    return [count] {
      std::vector<sim::thread> all;
      while (all.size() < count) {
        all.emplace_back([] {});
      }
      all.clear();
      sim::var<int> shared(0);
      sim::thread one([&] { shared = 1; });
      sim::thread other([&] { shared = 2; });
    };
  };
  EXPECT_EQ(sim::explore(several(15)).what, outcome::data_race);
  EXPECT_EQ(sim::explore(several(16)).what, outcome::exception);
}

TEST(explore, no_exploration_inside_of_another) {
  EXPECT_EQ(sim::explore([] { static_cast<void>(sim::explore([] {})); }).what, outcome::exception);
}

TEST(explore, outside_of_one_no_runtime_begins) { EXPECT_THROW(runtime({.workers = 1}), std::system_error); }

}  // namespace
