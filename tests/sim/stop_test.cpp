// A stop comes at any moment of a wait that another party ends at the same time. The wait ends once, and the object of
// the wait is neither lost nor taken twice. Then the parts of stops: sources, callbacks and scopes.
#include <pirn/fiber/runtime.hpp>
#include <pirn/fiber/scope.hpp>
#include <pirn/sync/channel.hpp>
#include <pirn/sync/event.hpp>
#include <pirn/sync/mutex.hpp>
#include <pirn/sync/semaphore.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>

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

/// A fiber waits, another one stops it, and a plain thread notifies.
template <class Wait, class Notify>
void stop_against(const Wait& wait, const Notify& notify, bool migratable = false) {
  watched_runtime all(2);
  fiber waits = all->spawn(wait, {.worker = 0, .migratable = migratable});
  fiber stops = all->spawn([&] { waits.request_stop(); }, {.worker = 1});
  all.watch();
  notify();
  stops.join();
  waits.join();
  all.done();
}

/// Returns whether a wait that a stop may end was notified.
template <class Result>
bool unless_stopped(const Result& result) {
  return pirn_test::ended_well(result, wait_error::stopped);
}

// ---- each primitive -----------------------------------------------------------------------------------------------

TEST(stop, of_a_wait_for_a_mutex) {
  expect_both([] {
    mutex lock;
    sim::var<int> inside(0);
    lock.lock();
    stop_against(
        [&] {
          if (unless_stopped(lock.lock(platform::never))) {
            inside += 1;
            lock.unlock();
          }
        },
        [&] {
          inside += 1;
          lock.unlock();
        });
    sim::check(lock.try_lock(), "nobody has it");
    lock.unlock();
  });
}

TEST(stop, of_a_wait_for_an_event) {
  expect_both([] {
    event happened(event_reset::automatic);
    bool seen = false;
    stop_against([&] { seen = unless_stopped(happened.wait()); }, [&] { happened.set(); });
    sim::check(happened.try_wait() != seen, "it is seen once");
  });
}

TEST(stop, of_a_fiber_that_any_worker_may_resume) {
  for (const bool limited : {false, true}) {
    expect_both([limited] {
      const platform::time_point deadline = limited ? platform::now() + 1h : platform::never;
      event happened(event_reset::automatic);
      bool seen = false;
      stop_against([&] { seen = unless_stopped(happened.wait(deadline)); }, [&] { happened.set(); }, true);
      sim::check(happened.try_wait() != seen, "it is seen once");
    });
  }
}

TEST(stop, of_a_wait_for_a_permit) {
  expect_both([] {
    counting_semaphore permits(0);
    bool taken = false;
    stop_against([&] { taken = unless_stopped(permits.acquire()); }, [&] { permits.release(); });
    sim::check(permits.try_acquire() != taken, "it is taken once");
    sim::check(!permits.try_acquire(), "there was but one");
  });
}

/// Two fibers wait, and the first is stopped: its notification goes to the second.
template <class Wait, class Notify>
void stop_of_the_first(const Wait& wait, const Notify& notify) {
  watched_runtime all(2);
  bool notified = false;
  fiber first = all->spawn([&] { notified = unless_stopped(wait()); }, {.worker = 0});
  fiber second = all->spawn([&] { sim::check(wait().has_value(), "nobody stops this one"); }, {.worker = 0});
  fiber stops = all->spawn([&] { first.request_stop(); }, {.worker = 1});
  all.watch();
  notify();
  first.join();
  if (notified) {
    notify();
  }
  second.join();
  stops.join();
  all.done();
}

TEST(stop, of_one_who_waits_for_a_permit_before_another) {
  expect_both([] {
    counting_semaphore permits(0);
    stop_of_the_first([&] { return permits.acquire(); }, [&] { permits.release(); });
  });
}

TEST(stop, of_one_who_waits_for_an_event_before_another) {
  expect_both([] {
    event happened(event_reset::automatic);
    stop_of_the_first([&] { return happened.wait(); }, [&] { happened.set(); });
  });
}

TEST(stop, of_a_receiver) {
  expect_both([] {
    channel<int> values(1);
    int received = 0;
    stop_against(
        [&] {
          const auto result = values.receive();
          received = unless_stopped(result) ? *result : 0;
        },
        [&] { sim::check(values.try_send(7).has_value(), "there is room"); });
    const auto left = values.try_receive();
    sim::check(left.has_value() ? received == 0 && *left == 7 : received == 7, "it is received once");
  });
}

TEST(stop, of_a_sender) {
  expect_both([] {
    channel<int> values(1);
    static_cast<void>(values.try_send(1));
    bool sent = false;
    stop_against([&] { sent = unless_stopped(values.send(2)); },
                 [&] { sim::check(values.try_receive().value_or(0) == 1, "the first is there"); });
    const auto left = values.try_receive();
    sim::check(left.has_value() == sent && left.value_or(2) == 2, "it was sent, or it was not");
  });
}

TEST(stop, of_a_receiver_whom_a_sender_meets) {
  expect_both([] {
    channel<int> values(0);
    bool received = false;
    bool sent = false;
    stop_against([&] { received = unless_stopped(values.receive()); },
                 [&] { sent = values.send(7, platform::now() + 1ms).has_value(); });
    sim::check(sent == received, "both have met, or neither has");
  });
}

TEST(stop, of_a_sleep) {
  expect_both([] {
    watched_runtime all(2);
    const auto end = platform::now() + 1ms;
    fiber sleeps = all->spawn(
        [&] {
          const bool slept = unless_stopped(this_fiber::sleep_until(end));
          sim::check(!slept || platform::now() == end, "as long as it should");
        },
        {.worker = 0});
    fiber stops = all->spawn(
        [&] {
          sim::check(this_fiber::sleep_until(end).has_value(), "nobody stops this one");
          sleeps.request_stop();
        },
        {.worker = 1});
    all.watch();
    stops.join();
    sleeps.join();
    all.done();
  });
}

TEST(stop, of_a_join) {
  expect_both([] {
    watched_runtime all(2);
    sim::var<int> ran(0);
    fiber works = all->spawn([&] { ran = 1; }, {.worker = 1});
    fiber waits = all->spawn(
        [&] {
          if (!unless_stopped(works.join(platform::never))) {
            works.join();
          }
          sim::check(ran == 1, "it has ended");
        },
        {.worker = 0});
    all.watch();
    waits.request_stop();
    waits.join();
    all.done();
  });
}

TEST(stop, by_a_token) {
  expect_passes([] {
    watched_runtime all(2);
    stop_source source;
    event never;
    const auto waits = [&] { sim::check(!unless_stopped(never.wait()), "only a stop ends it"); };
    fiber one = all->spawn(waits, {.worker = 0, .stop = source.get_token()});
    fiber two = all->spawn(waits, {.worker = 1, .stop = source.get_token()});
    all.watch();
    sim::check(source.request_stop(), "it is the first");
    one.join();
    two.join();
    all.done();
  });
}

// ---- sources and callbacks ----------------------------------------------------------------------------------------

void two_requests() {
  stop_source source;
  sim::var<int> called(0);
  int first = 0;
  {
    const stop_callback call(source.get_token(), [&] { called += 1; });
    sim::thread other([&, mine = source]() mutable {
      if (mine.request_stop()) {
        first += 1;
      }
    });
    if (source.request_stop()) {
      first += 1;
    }
    other.join();
  }
  sim::check(first == 1, "one of them is the first");
  sim::check(called == 1, "and calls");
}

TEST(stop_source, is_requested_once) { expect_passes(two_requests); }

void a_callback_that_goes() {
  stop_source source;
  sim::var<int> called(0);
  sim::thread other([&] { source.request_stop(); });
  {
    const stop_callback call(source.get_token(), [&] { called += 1; });
  }
  // If the call had not ended, this would race with it.
  sim::check(called <= 1, "it is called once at most");
  called = 5;
  other.join();
  sim::check(called == 5, "and not later");
}

TEST(stop_callback, is_over_when_it_is_gone) { expect_passes(a_callback_that_goes); }
TEST(stop_callback, is_over_when_it_is_gone_where_words_are_old) {
  expect_passes(a_callback_that_goes, {.stale_reads = true});
}

void callbacks_that_come() {
  stop_source source;
  sim::var<int> called[2] = {0, 0};
  sim::thread stops([&] { source.request_stop(); });
  std::optional<stop_callback<std::function<void()>>> one;
  sim::thread other([&] { one.emplace(source.get_token(), [&] { called[0] += 1; }); });
  {
    const stop_callback two(source.get_token(), [&] { called[1] += 1; });
    stops.join();
    other.join();
    sim::check(called[1] == 1, "it is called once");
  }
  sim::check(called[0] == 1, "it is called once");
}

TEST(stop_callback, is_called_once_whenever_it_comes) { expect_passes(callbacks_that_come); }
TEST(stop_callback, is_called_once_where_words_are_old) { expect_passes(callbacks_that_come, {.stale_reads = true}); }

// ---- scopes -------------------------------------------------------------------------------------------------------

struct failure : std::runtime_error {
  using runtime_error::runtime_error;
};

TEST(scope, stops_the_others_when_one_fails) {
  expect_passes([] {
    watched_runtime all(2);
    event never;
    int stopped = 0;
    fiber opens = all->spawn(
        [&] {
          scope children;
          children.spawn([&] { stopped += unless_stopped(never.wait()) ? 0 : 1; }, {.worker = 0});
          children.spawn([] { throw failure("the first"); }, {.worker = 1});
          bool thrown = false;
          try {
            children.join();
          } catch (const failure&) {
            thrown = true;
          }
          sim::check(thrown && stopped == 1, "the failure arrives, and the other was stopped");
        },
        {.worker = 0});
    all.watch();
    opens.join();
    all.done();
  });
}

TEST(scope, ends_after_all_its_children) {
  expect_passes([] {
    watched_runtime all(3);
    sim::var<int> ended[3] = {0, 0, 0};
    fiber opens = all->spawn(
        [&] {
          {
            scope children;
            for (int i = 0; i < 3; ++i) {
              children.spawn([&each = ended[i]] { each += 1; }, {.worker = i});
            }
            children.join();
          }
          sim::check(ended[0] + ended[1] + ended[2] == 3, "all have ended");
        },
        {.worker = 0});
    all.watch();
    opens.join();
    all.done();
  });
}

TEST(scope, stopped_while_it_closes) {
  expect_passes([] {
    watched_runtime all(2);
    stop_source source;
    fiber opens = all->spawn(
        [&] {
          {
            scope children({.stop = source.get_token()});
            children.spawn([] {});
            children.join();
          }
          sim::check(this_fiber::check_stop().has_value(), "a stop of the scope is over with it");
          sim::check(this_fiber::sleep_for(1ms).has_value(), "and ends no later wait");
        },
        {.worker = 0});
    fiber stops = all->spawn([&] { source.request_stop(); }, {.worker = 1});
    all.watch();
    opens.join();
    stops.join();
    all.done();
  });
}

/// A stop of the fiber goes down from list to list, and each scope that it reaches exists until it has passed.
TEST(scope, stopped_from_above_while_inner_ones_close) {
  expect_passes([] {
    watched_runtime all(2);
    event never;
    fiber opens = all->spawn(
        [&] {
          scope outer;
          outer.spawn([&] {
            scope inner;
            inner.spawn([] {});
            inner.join();
          });
          {
            const scope own;
            this_fiber::yield();
          }
          sim::check(never.wait() == std::unexpected(wait_error::stopped), "the stop comes");
          outer.join();
          sim::check(this_fiber::stop_requested(), "and stays");
        },
        {.worker = 0});
    fiber stops = all->spawn([&] { opens.request_stop(); }, {.worker = 1});
    all.watch();
    opens.join();
    stops.join();
    all.done();
  });
}

TEST(scope, race_has_one_winner) {
  expect_passes([] {
    watched_runtime all(2);
    sim::atomic<int> ended{0};
    fiber opens = all->spawn(
        [&] {
          scope children({.worker = spawn_options::any_worker});
          const auto runs = [&](int number) {
            return [&ended, number] {
              ended.fetch_add(1);
              return number;
            };
          };
          const int winner = children.race(runs(1), runs(2));
          sim::check(winner == 1 || winner == 2, "one of them");
          sim::check(ended.load() == 2, "and both have ended");
        },
        {.worker = 0});
    all.watch();
    opens.join();
    all.done();
  });
}

TEST(scope, any_has_one_that_returns) {
  expect_passes([] {
    watched_runtime all(2);
    fiber opens = all->spawn(
        [&] {
          scope children({.worker = spawn_options::any_worker});
          const int winner = children.any([]() -> int { throw failure("no"); }, [] { return 2; });
          sim::check(winner == 2, "the one that has not failed");
        },
        {.worker = 0});
    all.watch();
    opens.join();
    all.done();
  });
}

TEST(scope, nested_deadlines) {
  expect_passes([] {
    watched_runtime all(2);
    fiber opens = all->spawn(
        [&] {
          event never;
          const auto start = platform::now();
          const scope outer({.deadline = start + 2ms});
          {
            scope inner({.deadline = start + 1ms});
            inner.spawn([&] { sim::check(never.wait() == std::unexpected(wait_error::expired), "its deadline"); },
                        {.worker = 1});
            inner.join();
            sim::check(platform::now() == start + 1ms, "the inner one is the nearest");
          }
          sim::check(this_fiber::check_stop().has_value(), "the outer one goes on");
          sim::check(never.wait() == std::unexpected(wait_error::expired), "to its own deadline");
          sim::check(platform::now() == start + 2ms, "that is the outer one");
        },
        {.worker = 0});
    all.watch();
    opens.join();
    all.done();
  });
}

}  // namespace
