// At every primitive, a stop or a deadline ends a wait that nothing else would end, however close it comes to the
// beginning of the wait. Afterwards the primitive is as before.
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/sync/barrier.hpp>
#include <pirn/sync/channel.hpp>
#include <pirn/sync/condition_variable.hpp>
#include <pirn/sync/event.hpp>
#include <pirn/sync/expert/biased_mutex.hpp>
#include <pirn/sync/future.hpp>
#include <pirn/sync/latch.hpp>
#include <pirn/sync/mutex.hpp>
#include <pirn/sync/once.hpp>
#include <pirn/sync/recursive_mutex.hpp>
#include <pirn/sync/select.hpp>
#include <pirn/sync/semaphore.hpp>
#include <pirn/sync/shared_mutex.hpp>
#include <pirn/sync/wait_group.hpp>

#include <mutex>

#include "sim/together.hpp"

using namespace pirn;
using pirn_test::expect_passes;
using pirn_test::run_together;
using pirn_test::soon;

namespace {

using outcome = std::expected<void, wait_error>;

/// For each kind of wait: `wait` would wait for ever; then `let` lets one later caller pass.
template <class Mutex>
struct of_lock {
  Mutex lock;
  void hold() { lock.lock(); }
  outcome wait(platform::time_point deadline) { return lock.lock(deadline); }
  void let() { lock.unlock(); }
};
struct of_reader {
  shared_mutex lock;
  void hold() { lock.lock(); }
  void let() { lock.unlock(); }
  outcome wait(platform::time_point deadline) { return lock.lock_shared(deadline); }
};
struct nothing_held {
  void hold() {}
};
template <event_reset How>
struct of_event : nothing_held {
  event happened{How};
  outcome wait(platform::time_point deadline) { return happened.wait(deadline); }
  void let() { happened.set(); }
};
struct of_semaphore : nothing_held {
  counting_semaphore<> permits{0};
  outcome wait(platform::time_point deadline) { return permits.acquire(deadline); }
  void let() { permits.release(); }
};
struct of_latch : nothing_held {
  latch all{1};
  outcome wait(platform::time_point deadline) { return all.wait(deadline); }
  void let() { all.count_down(); }
};
struct of_wait_group : nothing_held {
  wait_group all{1};
  outcome wait(platform::time_point deadline) { return all.wait(deadline); }
  void let() { all.done(); }
};
struct of_barrier {
  barrier<> all{2};
  std::optional<barrier<>::arrival_token> mine;
  void hold() { mine.emplace(all.arrive()); }
  outcome wait(platform::time_point deadline) { return all.wait(*mine, deadline); }
  void let() { static_cast<void>(all.arrive()); }
};
struct of_condition : nothing_held {
  mutex lock;
  condition_variable changed;
  bool ready = false;
  outcome wait(platform::time_point deadline) {
    std::unique_lock guard(lock);
    return changed.wait(guard, [this] { return ready; }, deadline);
  }
  void let() {
    const std::lock_guard guard(lock);
    ready = true;
    changed.notify_one();
  }
};
struct of_receive : nothing_held {
  channel<int> values{1};
  outcome wait(platform::time_point deadline) {
    const auto got = values.receive(deadline);
    return got ? outcome() : std::unexpected(got.error());
  }
  void let() { sim::check(values.try_send(1).has_value()); }
};
struct of_send {
  channel<int> values{1};
  void hold() { sim::check(values.try_send(1).has_value()); }
  outcome wait(platform::time_point deadline) { return values.send(2, deadline); }
  void let() { sim::check(values.try_receive() == 1); }
};
struct of_select : nothing_held {
  channel<int> values{1};
  event happened{event_reset::automatic};
  int got = 0;
  outcome wait(platform::time_point deadline) {
    const selection fired = select(receive(values, got), pirn::wait(happened), until(deadline));
    return fired.index == 2 ? std::unexpected(wait_error::timed_out) : fired.outcome;
  }
  void let() { happened.set(); }
};
struct of_future : nothing_held {
  promise<int> owner;
  shared_future<int> result = owner.get_future();
  outcome wait(platform::time_point deadline) { return result.wait(deadline); }
  void let() { owner.set_value(1); }
};

template <class Kind>
class stops : public testing::Test {};
using kinds =
    testing::Types<of_lock<mutex>, of_lock<recursive_mutex>, of_lock<biased_mutex>, of_lock<shared_mutex>, of_reader,
                   of_event<event_reset::manual>, of_event<event_reset::automatic>, of_semaphore, of_latch,
                   of_wait_group, of_barrier, of_condition, of_receive, of_send, of_select, of_future>;
TYPED_TEST_SUITE(stops, kinds);

TYPED_TEST(stops, end_the_wait) {
  expect_passes([] {
    TypeParam kind;
    std::vector<fiber> fibers;
    pirn_test::gate tried;
    run_together({[&] {
                    fibers[1].request_stop();
                    tried.pass();
                    kind.let();
                    sim::check(kind.wait(platform::never).has_value(), "it can be used as before");
                  },
                  [&] {
                    const outcome ended = kind.wait(platform::never);
                    sim::check(!ended && ended.error() == wait_error::stopped);
                    tried.open();
                  }},
                 {.before = [&] { kind.hold(); }, .fibers = &fibers});
  });
}

TYPED_TEST(stops, and_deadlines_end_the_wait_once) {
  expect_passes([] {
    TypeParam kind;
    std::vector<fiber> fibers;
    pirn_test::gate tried;
    const platform::time_point when = soon();
    run_together({[&] {
                    static_cast<void>(this_fiber::sleep_until(when));
                    fibers[1].request_stop();
                    tried.pass();
                    kind.let();
                    sim::check(kind.wait(platform::never).has_value(), "it can be used as before");
                  },
                  [&] {
                    const outcome ended = kind.wait(when);
                    sim::check(!ended);
                    sim::check(ended.error() == wait_error::stopped || platform::now() >= when);
                    tried.open();
                  }},
                 {.before = [&] { kind.hold(); }, .fibers = &fibers});
  });
}

// A waker is not done with a plain thread once its wait has ended: a deadline that passes then must not release it.
TEST(waits, of_a_plain_thread_end_when_their_waker_is_done_with_it) {
  expect_passes(
      [] {
        event first{event_reset::automatic};
        event second{event_reset::automatic};
        platform::atomic<std::uint32_t> never_told{0};
        const platform::time_point when = soon();
        run_together({[] {},
                      [&] {
                        while (platform::futex_wait(never_told, 0, when)) {
                        }
                        first.set();
                        second.set();
                      },
                      [&] {
                        static_cast<void>(first.wait(when));
                        sim::check(second.wait().has_value());
                      }},
                     {.threads = 2});
        sim::check(!second.try_wait(), "the second wait was ended by its own signal");
      },
      {.preemptions = 3});
}

}  // namespace
