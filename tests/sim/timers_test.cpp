// Virtual time: sleepers wake in order and at the requested moment. A deadline that passes while another party ends the
// wait leaves exactly one of the two ends.
#include <pirn/fiber/runtime.hpp>
#include <pirn/fiber/scope.hpp>
#include <pirn/sync/channel.hpp>
#include <pirn/sync/event.hpp>
#include <pirn/sync/mutex.hpp>
#include <pirn/sync/semaphore.hpp>

#include <chrono>
#include <functional>
#include <vector>

#include "pirn/sim/thread.hpp"
#include "pirn/sim/var.hpp"
#include "sim/both_ways.hpp"
#include "sim/fibers.hpp"
#include "sim/watched_runtime.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using pirn_test::expect_both;
using pirn_test::expect_passes;
using pirn_test::watched_runtime;

namespace {

void sleep(std::chrono::milliseconds how_long) {
  sim::check(this_fiber::sleep_for(how_long).has_value(), "nothing ends a sleep early");
}

TEST(sleep, of_several_ends_in_order) {
  expect_passes([] {
    watched_runtime all(2);
    sim::var<int> newest(0);
    const auto sleeps = [&](int how_long) {
      return [&newest, how_long] {
        const auto start = platform::now();
        sleep(std::chrono::milliseconds(how_long));
        sim::check(platform::now() == start + std::chrono::milliseconds(how_long), "so long and no longer");
        sim::check(newest < how_long, "who sleeps longer comes later");
        newest = how_long;
      };
    };
    fiber three = all->spawn(sleeps(3), {.worker = 0});
    fiber one = all->spawn(sleeps(1), {.worker = 0});
    fiber two = all->spawn(sleeps(2), {.worker = 0});
    fiber comes = all->spawn([] { spawn([] {}, {.worker = 0}).join(); }, {.worker = 1});
    all.watch();
    three.join();
    one.join();
    two.join();
    comes.join();
    all.done();
    sim::check(newest == 3, "all have slept");
  });
}

TEST(sleep, of_many_ends_in_time) {
  expect_passes([] {
    watched_runtime all(1);
    std::vector<fiber> fibers;
    for (int i = 0; i < 40; ++i) {
      fibers.push_back(all->spawn([i] {
        // The first sleeps begin at the same time, the others while most still sleep.
        for (const int how_long : {1 + i * 7 % 10, 1 + i * 3 % 10, 20 - i % 7}) {
          const auto start = platform::now();
          sleep(std::chrono::milliseconds(how_long));
          sim::check(platform::now() == start + std::chrono::milliseconds(how_long), "so long and no longer");
        }
      }));
    }
    for (fiber& each : fibers) {
      each.join();
    }
  });
}

TEST(sleep, does_not_keep_others_waiting) {
  expect_passes([] {
    watched_runtime all(2);
    fiber sleeps = all->spawn([] { sleep(5ms); }, {.worker = 0});
    fiber hands_over = all->spawn(
        [] {
          sleep(1ms);
          spawn([] {}, {.worker = 0}).join();
          sim::check(sim::elapsed() == 1ms, "its worker wakes for it");
        },
        {.worker = 1});
    all.watch();
    sleeps.join();
    hands_over.join();
    all.done();
  });
}

// ---- deadlines that pass at the moment of the wake-up -------------------------------------------------------------

/// A fiber waits until a deadline; when that passes, a fiber of another worker notifies.
template <class Wait, class Notify>
void deadline_against(const Wait& wait, const Notify& notify) {
  watched_runtime all(2);
  const auto deadline = platform::now() + 1ms;
  fiber waits = all->spawn([&] { wait(deadline); }, {.worker = 0});
  fiber notifies = all->spawn(
      [&] {
        sim::check(this_fiber::sleep_until(deadline).has_value(), "nothing ends a sleep early");
        notify();
      },
      {.worker = 1});
  all.watch();
  waits.join();
  notifies.join();
  all.done();
}

/// Returns whether a wait that a deadline may end was notified.
template <class Result>
bool in_time(const Result& result) {
  return pirn_test::ended_well(result, wait_error::timed_out);
}

TEST(deadline, of_an_event) {
  expect_both([] {
    event happened(event_reset::automatic);
    bool seen = false;
    deadline_against([&](auto deadline) { seen = in_time(happened.wait(deadline)); }, [&] { happened.set(); });
    sim::check(happened.try_wait() != seen, "it is seen once");
  });
}

TEST(deadline, of_a_lock) {
  expect_both([] {
    mutex lock;
    lock.lock();
    deadline_against(
        [&](auto deadline) {
          if (in_time(lock.lock(deadline))) {
            lock.unlock();
          }
        },
        [&] { lock.unlock(); });
    sim::check(lock.try_lock(), "nobody has it");
    lock.unlock();
  });
}

TEST(deadline, of_a_permit) {
  expect_both([] {
    counting_semaphore permits(0);
    bool taken = false;
    deadline_against([&](auto deadline) { taken = in_time(permits.acquire(deadline)); }, [&] { permits.release(); });
    sim::check(permits.try_acquire() != taken, "it is taken once");
  });
}

TEST(deadline, of_a_receiver) {
  expect_both([] {
    channel<int> values(0);
    bool received = false;
    bool sent = false;
    deadline_against([&](auto deadline) { received = in_time(values.receive(deadline)); },
                     [&] { sent = values.try_send(7).has_value(); });
    sim::check(sent == received, "both have met, or neither has");
  });
}

TEST(deadline, of_a_child) {
  expect_passes([] {
    event happened(event_reset::automatic);
    bool seen = false;
    deadline_against(
        [&](auto deadline) {
          scope children({.deadline = deadline});
          children.spawn([&] {
            const auto result = happened.wait();
            sim::check(result.has_value() || result.error() == wait_error::expired, "it is ended by the two only");
            seen = result.has_value();
          });
          children.join();
        },
        [&] { happened.set(); });
    sim::check(happened.try_wait() != seen, "it is seen once");
  });
}

TEST(deadline, of_an_earlier_wait_ends_no_later_one) {
  expect_both([] {
    watched_runtime all(2);
    counting_semaphore permits(0);
    const auto start = platform::now();
    fiber waits = all->spawn(
        [&] {
          if (!in_time(permits.acquire(start + 1ms))) {
            sim::check(platform::now() == start + 1ms, "at its moment");
            sim::check(in_time(permits.acquire(start + 3ms)), "which comes with the first");
          }
          sim::check(in_time(permits.acquire(start + 3ms)), "which comes with the second");
        },
        {.worker = 0});
    fiber notifies = all->spawn(
        [&] {
          sim::check(this_fiber::sleep_until(start + 1ms).has_value(), "nothing ends a sleep early");
          permits.release();
          sleep(1ms);
          permits.release();
        },
        {.worker = 1});
    all.watch();
    waits.join();
    notifies.join();
    all.done();
  });
}

TEST(deadline, of_a_plain_thread) {
  expect_both([] {
    event happened(event_reset::automatic);
    watched_runtime all(1);
    const auto deadline = platform::now() + 1ms;
    fiber sets = all->spawn([&] {
      sim::check(this_fiber::sleep_until(deadline).has_value(), "nothing ends a sleep early");
      happened.set();
    });
    all.watch();
    const bool seen = in_time(happened.wait(deadline));
    sets.join();
    all.done();
    sim::check(happened.try_wait() != seen, "it is seen once");
  });
}

}  // namespace
