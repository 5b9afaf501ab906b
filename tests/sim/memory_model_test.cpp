// The litmus tests of the C++ memory model: which values loads may see, and which not, with `stale_reads` and without.
// A load never sees a store that comes later (no load buffering), as in loom.
#include <gtest/gtest.h>

#include <memory>
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
using order = std::memory_order;
using sim::outcome;

namespace {

using outcomes = std::set<std::string>;

/// Explores two words and one thread for each function. Returns all that the threads report.
template <class... Bodies>
outcomes all_with(const sim::options& options, Bodies... bodies) {
  outcomes seen;
  const sim::result found = sim::explore(
      [&] {
        sim::atomic<int> x(0);
        sim::atomic<int> y(0);
        std::string saw[sizeof...(Bodies)];
        std::size_t next = 0;
        {
          const sim::thread threads[] = {
              sim::thread([&x, &y, &bodies, place = &saw[next++]] { bodies(x, y, *place); })...};
        }
        std::string end;
        for (const std::string& each : saw) {
          end += each;
        }
        seen.insert(end);
      },
      options);
  EXPECT_TRUE(found) << found.text();
  EXPECT_TRUE(found.complete);
  return seen;
}
template <class... Bodies>
outcomes all_of(bool stale, Bodies... bodies) {
  return all_with({.preemptions = sim::no_bound, .stale_reads = stale}, bodies...);
}

using word = sim::atomic<int>;
std::string text(int value) { return std::to_string(value); }

/// Each thread stores to one word and then loads the other one.
outcomes store_buffering(bool stale, order store, order load, void (*first)(), void (*second)()) {
  return all_of(
      stale,
      [=](word& x, word& y, std::string& saw) {
        x.store(1, store);
        first();
        saw = text(y.load(load));
      },
      [=](word& x, word& y, std::string& saw) {
        y.store(1, store);
        second();
        saw = text(x.load(load));
      });
}
void nothing() {}

TEST(store_buffering, is_seen_unless_the_order_is_total) {
  const outcomes all = {"00", "01", "10", "11"};
  const outcomes ordered = {"01", "10", "11"};
  EXPECT_EQ(store_buffering(true, memory_order_relaxed, memory_order_relaxed, nothing, nothing), all);
  EXPECT_EQ(store_buffering(true, memory_order_release, memory_order_acquire, nothing, nothing), all);
  EXPECT_EQ(store_buffering(true, memory_order_seq_cst, memory_order_seq_cst, nothing, nothing), ordered);
  EXPECT_EQ(store_buffering(false, memory_order_relaxed, memory_order_relaxed, nothing, nothing), ordered);
}

TEST(store_buffering, the_asymmetric_fences_order_it_in_a_pair) {
  const auto light = [] { platform::light_fence(); };
  const auto heavy = [] { platform::heavy_fence(); };
  const auto run = [](void (*first)(), void (*second)()) {
    return store_buffering(true, memory_order_relaxed, memory_order_relaxed, first, second);
  };
  EXPECT_EQ(run(light, heavy), (outcomes{"01", "10", "11"}));
  EXPECT_EQ(run(heavy, heavy), (outcomes{"01", "10", "11"}));
  EXPECT_EQ(run(light, light), (outcomes{"00", "01", "10", "11"}));
}

TEST(store_buffering, the_symmetric_fences_order_it_in_every_pair) {
  const auto run = [](void (*first)(), void (*second)()) {
    return all_with(
        {.preemptions = sim::no_bound, .stale_reads = true, .symmetric_fences = true},
        [=](word& x, word& y, std::string& saw) {
          x.store(1, memory_order_relaxed);
          first();
          saw = text(y.load(memory_order_relaxed));
        },
        [=](word& x, word& y, std::string& saw) {
          y.store(1, memory_order_relaxed);
          second();
          saw = text(x.load(memory_order_relaxed));
        });
  };
  const auto light = [] { platform::light_fence(); };
  const auto heavy = [] { platform::heavy_fence(); };
  const outcomes ordered = {"01", "10", "11"};
  EXPECT_EQ(run(light, heavy), ordered);
  EXPECT_EQ(run(heavy, heavy), ordered);
  EXPECT_EQ(run(light, light), ordered);
  EXPECT_EQ(run(nothing, heavy), (outcomes{"00", "01", "10", "11"})) << "a fence orders its own side only";
}

TEST(store_buffering, a_fence_orders_it_with_what_is_sequentially_consistent) {
  const auto run = [](order store, order load) {
    return all_of(
        true,
        [=](word& x, word& y, std::string& saw) {
          x.store(1, store);
          saw = text(y.load(load));
        },
        [](word& x, word& y, std::string& saw) {
          y.store(1, memory_order_relaxed);
          sim::atomic_thread_fence(memory_order_seq_cst);
          saw = text(x.load(memory_order_relaxed));
        });
  };
  EXPECT_FALSE(run(memory_order_seq_cst, memory_order_seq_cst).contains("00"));
  EXPECT_TRUE(run(memory_order_release, memory_order_seq_cst).contains("00"));
  EXPECT_TRUE(run(memory_order_seq_cst, memory_order_acquire).contains("00"));
}

TEST(coherence, goes_on_where_one_thread_happens_before_another) {
  const auto hand_on = [](order store, order load) {
    return all_of(
               true, [](word& x, word&, std::string&) { x.store(1, memory_order_relaxed); },
               [=](word& x, word& y, std::string&) {
                 if (x.load(memory_order_relaxed) == 1) {
                   y.store(1, store);
                 }
               },
               [=](word& x, word& y, std::string& saw) {
                 if (y.load(load) == 1) {
                   saw = text(x.load(memory_order_relaxed));
                 }
               })
        .contains("0");
  };
  EXPECT_FALSE(hand_on(memory_order_release, memory_order_acquire))
      << "the writer has handed nothing on, its reader has";
  EXPECT_TRUE(hand_on(memory_order_relaxed, memory_order_acquire));
}

outcomes message_passing(bool stale, order store, order load) {
  return all_of(
      stale,
      [=](word& x, word& y, std::string&) {
        x.store(1, memory_order_relaxed);
        y.store(1, store);
      },
      [=](word& x, word& y, std::string& saw) {
        saw = text(y.load(load));
        saw += text(x.load(memory_order_relaxed));
      });
}

TEST(message_passing, needs_release_and_acquire) {
  const outcomes all = {"00", "01", "10", "11"};
  const outcomes ordered = {"00", "01", "11"};
  EXPECT_EQ(message_passing(true, memory_order_relaxed, memory_order_relaxed), all);
  EXPECT_EQ(message_passing(true, memory_order_release, memory_order_relaxed), all);
  EXPECT_EQ(message_passing(true, memory_order_relaxed, memory_order_acquire), all);
  EXPECT_EQ(message_passing(true, memory_order_release, memory_order_acquire), ordered);
  EXPECT_EQ(message_passing(false, memory_order_relaxed, memory_order_relaxed), ordered);
}

TEST(message_passing, a_change_in_between_hands_on) {
  const auto pass_on = [](order last) {
    return all_of(
        true,
        [](word& x, word& y, std::string&) {
          x.store(1, memory_order_relaxed);
          y.store(1, memory_order_release);
        },
        [](word&, word& y, std::string&) {
          int expected = 1;
          y.compare_exchange_strong(expected, 2, memory_order_relaxed, memory_order_relaxed);
        },
        [=](word& x, word& y, std::string& saw) {
          saw = y.load(last) == 2 ? text(x.load(memory_order_relaxed)) : "-";
        });
  };
  EXPECT_EQ(pass_on(memory_order_acquire), (outcomes{"-", "1"}));
  EXPECT_EQ(pass_on(memory_order_relaxed), (outcomes{"-", "0", "1"}));
}

TEST(coherence, nobody_sees_an_older_value_after_a_newer_one) {
  const outcomes seen = all_of(
      true,
      [](word& x, word&, std::string&) {
        x.store(1, memory_order_relaxed);
        x.store(2, memory_order_relaxed);
      },
      [](word& x, word&, std::string& saw) {
        saw = text(x.load(memory_order_relaxed));
        saw += text(x.load(memory_order_relaxed));
      });
  EXPECT_EQ(seen, (outcomes{"00", "01", "02", "11", "12", "22"}));
}

TEST(coherence, a_compare_exchange_that_fails_has_seen_a_value_too) {
  const outcomes seen = all_of(
      true, [](word& x, word&, std::string&) { x.store(1, memory_order_relaxed); },
      [](word& x, word&, std::string& saw) {
        int expected = 7;
        x.compare_exchange_strong(expected, 8, memory_order_relaxed);
        saw = text(expected);
        saw += text(x.load(memory_order_relaxed));
      });
  EXPECT_EQ(seen, (outcomes{"00", "01", "11"}));
}

TEST(coherence, changes_see_the_newest) {
  const auto add = [](word& x, word&, std::string& saw) { saw = text(x.fetch_add(1, memory_order_relaxed)); };
  EXPECT_EQ(all_of(true, add, add), (outcomes{"01", "10"}));
}

TEST(independent_reads, may_disagree_unless_the_order_is_total) {
  const auto readers = [](order store, order load) {
    return all_of(
               true, [=](word& x, word&, std::string&) { x.store(1, store); },
               [=](word&, word& y, std::string&) { y.store(1, store); },
               [=](word& x, word& y, std::string& saw) {
                 saw = text(x.load(load));
                 saw += text(y.load(load));
               },
               [=](word& x, word& y, std::string& saw) {
                 saw = text(y.load(load));
                 saw += text(x.load(load));
               })
        .contains("1010");
  };
  EXPECT_TRUE(readers(memory_order_release, memory_order_acquire));
  EXPECT_FALSE(readers(memory_order_seq_cst, memory_order_seq_cst));
  EXPECT_FALSE(readers(memory_order_relaxed, memory_order_seq_cst));
  EXPECT_TRUE(readers(memory_order_seq_cst, memory_order_acquire));
}

outcome race_of(std::function<void(sim::var<int>&, sim::atomic<int>&)> first,
                std::function<void(sim::var<int>&, sim::atomic<int>&)> second) {
  const auto both = [&] {
    sim::var<int> data(0);
    sim::atomic<int> flag(0);
    const sim::thread a([&] { first(data, flag); });
    const sim::thread b([&] { second(data, flag); });
  };
  const sim::result found = sim::explore(both, {.preemptions = sim::no_bound});
  const sim::result stale = sim::explore(both, {.preemptions = sim::no_bound, .stale_reads = true});
  EXPECT_EQ(found.what, stale.what) << found.text() << stale.text();
  return found.what;
}

TEST(race, is_what_happens_before_does_not_order) {
  const auto write = [](order how) {
    return [how](sim::var<int>& data, sim::atomic<int>& flag) {
      data = 1;
      flag.store(1, how);
    };
  };
  const auto read = [](order how) {
    return [how](sim::var<int>& data, sim::atomic<int>& flag) {
      if (flag.load(how) == 1) {
        sim::check(data == 1);
      }
    };
  };
  const auto only_read = [](sim::var<int>& data, sim::atomic<int>&) { sim::check(data == 0); };
  EXPECT_EQ(race_of(write(memory_order_release), read(memory_order_acquire)), outcome::passed);
  EXPECT_EQ(race_of(write(memory_order_relaxed), read(memory_order_acquire)), outcome::data_race);
  EXPECT_EQ(race_of(write(memory_order_release), read(memory_order_relaxed)), outcome::data_race);
  EXPECT_EQ(race_of(write(memory_order_release), write(memory_order_release)), outcome::data_race);
  EXPECT_EQ(race_of(only_read, only_read), outcome::passed);
}

TEST(race, is_what_fences_do_not_order) {
  const auto write = [](order how) {
    return [how](sim::var<int>& data, sim::atomic<int>& flag) {
      data = 1;
      sim::atomic_thread_fence(how);
      flag.store(1, memory_order_relaxed);
    };
  };
  const auto read = [](order how) {
    return [how](sim::var<int>& data, sim::atomic<int>& flag) {
      if (flag.load(memory_order_relaxed) == 1) {
        sim::atomic_thread_fence(how);
        sim::check(data == 1);
      }
    };
  };
  EXPECT_EQ(race_of(write(memory_order_release), read(memory_order_acquire)), outcome::passed);
  EXPECT_EQ(race_of(write(memory_order_seq_cst), read(memory_order_seq_cst)), outcome::passed);
  EXPECT_EQ(race_of(write(memory_order_acquire), read(memory_order_acquire)), outcome::data_race);
  EXPECT_EQ(race_of(write(memory_order_release), read(memory_order_release)), outcome::data_race);
  const auto fence_everywhere = [](sim::var<int>& data, sim::atomic<int>& flag) {
    data = 1;
    platform::heavy_fence();
    flag.store(1, memory_order_relaxed);
  };
  const auto read_relaxed = [](sim::var<int>& data, sim::atomic<int>& flag) {
    if (flag.load(memory_order_relaxed) == 1) {
      sim::check(data == 1);
    }
  };
  EXPECT_EQ(race_of(fence_everywhere, read_relaxed), outcome::data_race) << "a fence alone orders no accesses";
}

TEST(race, is_none_behind_a_heavy_fence) {
  for (const bool stale : {false, true}) {
    const sim::result found = sim::explore(
        [] {
          sim::var<int> data(0);
          sim::atomic<int> flag(0);
          const sim::thread writer([&] {
            data = 1;
            platform::heavy_fence();
            flag.store(1, memory_order_relaxed);
          });
          const sim::thread reader([&] {
            if (flag.load(memory_order_relaxed) == 1) {
              platform::heavy_fence();
              sim::check(data == 1);
            }
          });
        },
        {.stale_reads = stale});
    EXPECT_TRUE(found) << found.text();
  }
}

TEST(race, is_none_where_the_operators_of_an_atomic_order_it) {
  const auto write = [](sim::var<int>& data, sim::atomic<int>& flag) {
    data = 1;
    flag++;
  };
  const auto read = [](sim::var<int>& data, sim::atomic<int>& flag) {
    const int seen = flag |= 0;
    if (seen == 1) {
      sim::check(data == 1);
    }
  };
  EXPECT_EQ(race_of(write, read), outcome::passed);
  EXPECT_EQ(sim::explore(
                [] {
                  sim::atomic<int> count(5);
                  const std::vector<int> given = {count++, ++count,    count += 3, count -= 1, count--,
                                                  --count, count &= 6, count ^= 3, count |= 2};
                  sim::check(given == std::vector<int>{5, 7, 10, 9, 9, 7, 6, 5, 7});
                  sim::check(count.load() == 7);
                },
                {.stale_reads = true})
                .what,
            outcome::passed);
}

TEST(race, is_one_with_the_beginning_and_with_the_end_of_a_variable) {
  const auto publish = [](order how) {
    return sim::explore([how] {
             sim::atomic<sim::var<int>*> place(nullptr);
             sim::thread maker([&] { place.store(new sim::var<int>(7), how); });
             sim::thread reader([&] {
               if (const sim::var<int>* const made = place.load(how)) {
                 sim::check(made->get() == 7);
               }
             });
             maker.join();
             reader.join();
             delete place.load();
           })
        .what;
  };
  EXPECT_EQ(publish(memory_order_relaxed), outcome::data_race);
  EXPECT_EQ(publish(memory_order_seq_cst), outcome::passed);
  EXPECT_EQ(sim::explore([] {
              auto shared = std::make_unique<sim::var<int>>(7);
              const sim::thread reader([at = shared.get()] { sim::check(*at == 7); });
              const sim::thread owner([&] { shared.reset(); });
            }).what,
            outcome::data_race);
}

TEST(race, is_none_with_what_lay_there_before) {
  const sim::result found = sim::explore([] {
    const auto use_one = [] {
      const auto own = std::make_unique<sim::var<int>>(1);
      own->set(2);
    };
    const sim::thread a(use_one);
    const sim::thread b(use_one);
  });
  EXPECT_TRUE(found) << found.text();
}

TEST(race, is_none_where_a_thread_begins_or_is_joined) {
  const sim::result found = sim::explore([] {
    sim::var<int> data(1);
    sim::thread other([&] { data += 1; });
    other.join();
    data += 1;
    sim::check(data == 3);
  });
  EXPECT_TRUE(found) << found.text();
}

}  // namespace
