// Objects whose wake-ups switch over, and objects whose youngest waiter is next, while another worker takes part.
#include <pirn/sync/condition_variable.hpp>
#include <pirn/sync/event.hpp>
#include <pirn/sync/mutex.hpp>
#include <pirn/sync/semaphore.hpp>

#include <mutex>

#include "pirn/sim/var.hpp"
#include "sim/together.hpp"

using namespace pirn;
using pirn_test::expect_passes;
using pirn_test::run_fibers;
using pirn_test::run_together;
using pirn_test::soon;

namespace {

constexpr wait_policy switching{.wake = wake_policy::switch_over};
constexpr wait_policy youngest_first{.order = wait_order::lifo};

/// Two fibers of one worker and one of another increment a number under a mutex.
void count_under(wait_policy policy) {
  mutex lock(policy);
  sim::var<int> count(0);
  const auto add = [&] {
    const std::lock_guard guard(lock);
    count += 1;
  };
  run_fibers(2, {add, add, add});
  const std::lock_guard guard(lock);
  sim::check(count == 3, "each has held the mutex alone");
}
TEST(wait_policy, a_mutex_that_switches_over_excludes) {
  expect_passes([] { count_under(switching); });
}
TEST(wait_policy, a_mutex_of_the_youngest_excludes) {
  expect_passes([] { count_under(youngest_first); });
}

TEST(wait_policy, the_longest_waiter_gets_a_permit_though_others_give_up) {
  expect_passes([] {
    counting_semaphore<> free(0, youngest_first);
    const platform::time_point when = soon();
    int taken = 0;
    run_fibers(2, {[&] {
                     sim::check(free.acquire().has_value());
                     ++taken;
                   },
                   [&] {
                     static_cast<void>(this_fiber::sleep_until(when));
                     free.release();
                     free.release();
                   },
                   [&] { taken += free.acquire(when).has_value() ? 1 : 0; }});
    sim::check(taken >= 1 && free.try_acquire() == (taken == 1), "no permit is lost");
  });
}

TEST(wait_policy, a_condition_variable_waits_under_a_mutex_that_switches_over) {
  expect_passes([] {
    mutex lock(switching);
    condition_variable changed;
    bool ready = false;
    const auto wait = [&] {
      std::unique_lock held(lock);
      while (!ready) {
        sim::check(changed.wait(held).has_value());
      }
    };
    run_fibers(2, {wait,
                   [&] {
                     const std::lock_guard guard(lock);
                     ready = true;
                     changed.notify_all();
                   },
                   wait});
  });
}

TEST(wait_policy, an_event_that_switches_over_shows_what_was_done_before) {
  for (const event_reset reset : {event_reset::manual, event_reset::automatic}) {
    expect_passes([reset] {
      event set(reset, switching);
      sim::var<int> done(0);
      run_together({[&] {
                      sim::check(set.wait().has_value());
                      sim::check(done == 1);
                    },
                    [&] {
                      done = 1;
                      set.set();
                    }});
    });
  }
}

}  // namespace
