// The reduction leaves out executions, but no outcome: random programs are explored with it and without.
#include <gtest/gtest.h>
#include <pirn/sync/channel.hpp>
#include <pirn/sync/condition_variable.hpp>
#include <pirn/sync/mutex.hpp>
#include <pirn/sync/semaphore.hpp>

#include <cstdlib>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "pirn/detail/platform.hpp"
#include "pirn/sim/explore.hpp"
#include "pirn/sim/thread.hpp"
#include "pirn/sim/var.hpp"

using namespace pirn;
using platform::memory_order_acquire;
using platform::memory_order_relaxed;
using platform::memory_order_release;
using platform::memory_order_seq_cst;

namespace {

constexpr int words = 2;
using word = sim::atomic<int>;

/// The total numbers of executions, with and without the reduction.
struct effort {
  std::uint64_t with = 0;
  std::uint64_t without = 0;
};

struct random_program {
  std::uint64_t seed;
  int threads;
  int operations;  ///< of each thread
};

/// Returns all ends, as texts, to which threads of random operations on few words can come. Each operation, of class
/// `Operations`, gets a random number and returns what it has seen.
template <class Operations>
std::set<std::string> outcomes(const random_program& of, sim::options options, std::uint64_t& executions) {
  std::set<std::string> all;
  options.budget = std::chrono::minutes(1);
  const sim::result found = sim::explore(
      [&] {
        platform::random numbers(of.seed);
        Operations shared;
        std::vector<std::string> seen(static_cast<std::size_t>(of.threads));
        {
          std::vector<sim::thread> running;
          for (int self = 0; self < of.threads; ++self) {
            running.emplace_back([&, self, first = numbers.next()] {
              platform::random mine(first);
              for (int i = 0; i < of.operations; ++i) {
                seen[static_cast<std::size_t>(self)] += shared.run(mine.next(), 10 * self + i);
              }
            });
          }
        }
        std::string end;
        for (const std::string& each : seen) {
          end += each + "|";
        }
        for (word& each : shared.at) {
          end += std::to_string(each.load()) + ",";
        }
        all.insert(end);
      },
      options);
  EXPECT_TRUE(found) << found.text();
  EXPECT_TRUE(found.complete) << found.text();
  executions += found.executions;
  return all;
}

template <class Operations>
void expect_same_outcomes(const random_program& of, sim::options options, effort& took) {
  options.reduce = false;
  const std::set<std::string> everything = outcomes<Operations>(of, options, took.without);
  options.reduce = true;
  EXPECT_EQ(outcomes<Operations>(of, options, took.with), everything)
      << "seed " << of.seed << ", bound " << static_cast<int>(options.preemptions);
}

/// Returns the number of random programs, which PIRN_SIM_PROGRAMS can set.
std::uint64_t programs() {
  const char* const more = std::getenv("PIRN_SIM_PROGRAMS");
  return more != nullptr ? std::strtoull(more, nullptr, 10) : 30;
}
random_program program_of(std::uint64_t seed) {
  return seed % 2 == 0 ? random_program{.seed = seed, .threads = 2, .operations = 4}
                       : random_program{.seed = seed, .threads = 3, .operations = 2};
}

/// Operations on words, all sequentially consistent, and on a lock.
template <class Lock>
struct locked_operations {
  word at[words];
  Lock lock;

  std::string run(std::uint64_t what, int number) {
    word& chosen = at[what / 16 % words];
    int expected = 0;
    switch (what % 6) {
      case 0:
        return std::to_string(chosen.load());
      case 1:
        chosen.store(number);
        return {};
      case 2:
        return std::to_string(chosen.fetch_add(1));
      case 3:
        return chosen.compare_exchange_strong(expected, 7) ? "y" : "n";
      case 4: {
        lock.lock();
        const int seen = chosen.load();
        lock.unlock();
        return std::to_string(seen);
      }
      default:
        if (!lock.try_lock()) {
          return "l";
        }
        chosen.store(5);
        lock.unlock();
        return {};
    }
  }
};

TEST(reduction, leaves_no_outcome_out) {
  effort took;
  for (std::uint64_t seed = 1; seed <= programs(); ++seed) {
    expect_same_outcomes<locked_operations<platform::spinlock>>(program_of(seed), {.preemptions = sim::no_bound}, took);
  }
  EXPECT_LT(took.with, took.without / 4) << "it leaves nothing out";
}

TEST(reduction, leaves_no_outcome_out_under_a_bound) {
  effort took;
  for (std::uint64_t seed = 1; seed <= programs(); ++seed) {
    for (unsigned bound = 0; bound <= 2; ++bound) {
      expect_same_outcomes<locked_operations<mutex>>(program_of(seed), {.preemptions = bound}, took);
    }
  }
  EXPECT_LT(took.with, took.without / 4) << "it leaves nothing out";
}

/// Operations on words, in any memory order, with fences of both kinds in between.
struct ordered_operations {
  word at[words];

  std::string run(std::uint64_t what, int number) {
    word& chosen = at[what / 16 % words];
    const auto of = [what](auto... orders) {
      const std::memory_order all[] = {orders...};
      return all[what / 64 % sizeof...(orders)];
    };
    switch (what % 7) {
      case 0:
      case 1:
        return std::to_string(chosen.load(of(memory_order_relaxed, memory_order_acquire, memory_order_seq_cst)));
      case 2:
      case 3:
        chosen.store(number + 1, of(memory_order_relaxed, memory_order_release, memory_order_seq_cst));
        return {};
      case 4:
        return std::to_string(chosen.fetch_add(100, of(memory_order_relaxed, memory_order_seq_cst)));
      case 5:
        sim::atomic_thread_fence(of(memory_order_acquire, memory_order_release, memory_order_seq_cst));
        return {};
      default:
        platform::heavy_fence();
        return {};
    }
  }
};

TEST(reduction, leaves_no_outcome_out_with_stale_reads) {
  effort took;
  for (std::uint64_t seed = 1; seed <= programs(); ++seed) {
    expect_same_outcomes<ordered_operations>(program_of(seed), {.preemptions = sim::no_bound, .stale_reads = true},
                                             took);
  }
  EXPECT_LT(took.with, took.without / 4) << "it leaves nothing out";
}

TEST(reduction, leaves_no_outcome_out_with_stale_reads_under_a_bound) {
  effort took;
  for (std::uint64_t seed = 1; seed <= programs(); ++seed) {
    for (unsigned bound = 0; bound <= 2; ++bound) {
      expect_same_outcomes<ordered_operations>(program_of(seed), {.preemptions = bound, .stale_reads = true}, took);
    }
  }
  EXPECT_LT(took.with, took.without / 2) << "it leaves nothing out";
}

/// Waits with a deadline, all at the same moment, and the operations that end them.
struct waiting_operations {
  word at[1];
  mutex lock;
  condition_variable changed;
  counting_semaphore<> permits{0};
  channel<int> values{1};
  platform::time_point deadline = platform::now() + std::chrono::milliseconds(1);

  std::string run(std::uint64_t what, int number) {
    switch (what % 8) {
      case 0:
      case 1: {
        std::unique_lock guard(lock);
        return (changed.wait(guard, deadline) ? "w" : "late") + std::to_string(at[0].load());
      }
      case 2:
      case 3: {
        const std::lock_guard guard(lock);
        at[0].store(at[0].load() + 1);
        changed.notify_all();
        return {};
      }
      case 4:
        return permits.acquire(deadline) ? "p" : "-";
      case 5:
        permits.release();
        return {};
      case 6:
        return values.send(number, deadline) ? "s" : "-";
      default: {
        const auto got = values.receive(deadline);
        return got ? "r" + std::to_string(*got) : "-";
      }
    }
  }
};

TEST(reduction, leaves_no_outcome_out_where_waits_end_late) {
  effort took;
  for (std::uint64_t seed = 1; seed <= programs(); ++seed) {
    for (unsigned bound = 0; bound <= 1; ++bound) {
      expect_same_outcomes<waiting_operations>({.seed = seed, .threads = 2, .operations = 3}, {.preemptions = bound},
                                               took);
    }
  }
  EXPECT_LT(took.with, took.without / 2) << "it leaves nothing out";
}

struct two_words {
  word x{0};
  word y{0};
  std::string saw[3];
};
std::set<std::string> outcomes(const std::vector<std::function<void(two_words&, std::string&)>>& bodies,
                               const sim::options& options) {
  std::set<std::string> all;
  const sim::result found = sim::explore(
      [&] {
        two_words shared;
        {
          std::vector<sim::thread> running;
          for (std::size_t i = 0; i < bodies.size(); ++i) {
            running.emplace_back([&, i] { bodies[i](shared, shared.saw[i]); });
          }
        }
        all.insert(shared.saw[0] + "|" + shared.saw[1] + "|" + shared.saw[2]);
      },
      options);
  EXPECT_TRUE(found) << found.text();
  EXPECT_TRUE(found.complete) << found.text();
  return all;
}
std::string text(int value) { return std::to_string(value); }

TEST(reduction, begins_elsewhere_where_who_comes_later_sleeps) {
  const auto seen = outcomes({[](auto& of, std::string& saw) {
                                saw += text(of.x.load());
                                of.y = 2;
                              },
                              [](auto& of, std::string& saw) {
                                saw += text(of.y.fetch_add(1)) + ",";
                                saw += text(of.y.load());
                              },
                              [](auto& of, std::string& saw) {
                                saw += text(of.y.load()) + ",";
                                saw += text(of.x.fetch_add(1));
                              }},
                             {.preemptions = sim::no_bound});
  EXPECT_EQ(seen.size(), 14U);
  EXPECT_TRUE(seen.contains("1|0,2|1,0"));
}

TEST(reduction, has_a_heavy_fence_before_and_behind_what_others_do) {
  for (const unsigned bound : {2U, sim::no_bound}) {
    const auto seen = outcomes({[](auto& of, std::string& saw) {
                                  of.x.store(1, memory_order_relaxed);
                                  saw += text(of.y.fetch_add(1, memory_order_relaxed));
                                  platform::heavy_fence();
                                },
                                [](auto& of, std::string& saw) {
                                  saw += text(of.y.fetch_add(1, memory_order_relaxed)) + ",";
                                  saw += text(of.x.load(memory_order_relaxed));
                                }},
                               {.preemptions = bound, .stale_reads = true});
    EXPECT_EQ(seen, (std::set<std::string>{"0|1,0|", "0|1,1|", "1|0,0|", "1|0,1|"}));
  }
}

/// Expects that the failure of `program` is found with and without the reduction, with `preemptions` at most.
void expect_found(const std::function<void()>& program, unsigned preemptions) {
  for (const bool reduce : {false, true}) {
    const sim::result found = sim::explore(program, {.preemptions = preemptions, .reduce = reduce});
    EXPECT_EQ(found.what, sim::outcome::assertion) << "reduce: " << reduce << ": " << found.text();
  }
}

TEST(reduction, tries_each_race_under_a_bound) {
  expect_found(
      [] {
        word x(0), y(0);
        int first = -1, second = -1;
        {
          const sim::thread a([&] {
            const sim::thread child([&] { y = 1; });
            first = x;
          });
          const sim::thread b([&] {
            const sim::thread child([&] { x = 1; });
            second = x;
          });
        }
        sim::check(first != 1 || second != 0);
      },
      0);
}

TEST(reduction, has_an_unlock_behind_a_wait_for_the_lock_under_a_bound) {
  expect_found(
      [] {
        word x(0), y(0);
        platform::spinlock lock;
        int a1 = -1, b1 = -1, c1 = -1, c2 = -1;
        {
          const sim::thread a([&] {
            x = 1;
            lock.lock();
            a1 = y;
            lock.unlock();
          });
          const sim::thread b([&] {
            b1 = x;
            y = 1;
          });
          const sim::thread c([&] {
            lock.lock();
            c1 = x;
            lock.unlock();
            c2 = x;
          });
        }
        sim::check(c1 != 0 || c2 != 1 || b1 != 1 || a1 != 1);
      },
      1);
}

TEST(reduction, tries_races_with_what_a_thread_does_next_under_a_bound) {
  expect_found(
      [] {
        mutex lock;
        condition_variable changed;
        int changes = 0, seen = 0;
        bool both_late = true;
        const auto wait = [&] {
          std::unique_lock guard(lock);
          both_late &= !changed.wait(guard, platform::now() + std::chrono::milliseconds(1));
          seen = changes;
        };
        {
          const sim::thread changer([&] {
            wait();
            for (int i = 0; i < 2; ++i) {
              const std::lock_guard guard(lock);
              ++changes;
              changed.notify_all();
            }
          });
          const sim::thread other(wait);
        }
        sim::check(!both_late || seen != 1);
      },
      2);
}

TEST(reduction, lets_anybody_be_the_first_when_time_has_passed) {
  expect_found(
      [] {
        word x(0);
        const auto sleep = [] {
          const platform::atomic<std::uint32_t> own(0);
          platform::futex_wait(own, 0, platform::now() + std::chrono::milliseconds(1));
        };
        const sim::thread a([&] {
          sleep();
          x = 1;
        });
        const sim::thread b([&] {
          sleep();
          sim::check(x == 0);
        });
      },
      0);
}

}  // namespace
