// A deadline may be given as a point of any clock or as a duration of any unit, however far away.
#include <limits>
#include <string_view>

#include "fiber/support.hpp"
#include "pirn/fiber/blocking.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/sync/barrier.hpp"
#include "pirn/sync/channel.hpp"
#include "pirn/sync/co.hpp"
#include "pirn/sync/condition_variable.hpp"
#include "pirn/sync/event.hpp"
#include "pirn/sync/expert/biased_mutex.hpp"
#include "pirn/sync/expert/local.hpp"
#include "pirn/sync/future.hpp"
#include "pirn/sync/latch.hpp"
#include "pirn/sync/mutex.hpp"
#include "pirn/sync/once.hpp"
#include "pirn/sync/recursive_mutex.hpp"
#include "pirn/sync/select.hpp"
#include "pirn/sync/semaphore.hpp"
#include "pirn/sync/shared_mutex.hpp"
#include "pirn/sync/wait_group.hpp"

namespace {

using namespace pirn_test;
using pirn::wait_error;
using std::chrono::system_clock;
using result = std::expected<void, wait_error>;

/// Calls `check` with ways to say "for ever".
template <class Check>
void with_far_away(Check check) {
  check("nanoseconds::max()", std::chrono::nanoseconds::max());
  check("milliseconds::max()", std::chrono::milliseconds::max());
  check("seconds::max()", std::chrono::seconds::max());
  check("hours::max()", std::chrono::hours::max());
  check("years(200)", std::chrono::years(200));
  check("years(400)", std::chrono::years(400));
  check("infinity", std::chrono::duration<double>(std::numeric_limits<double>::infinity()));
  check("1e200s", std::chrono::duration<double>(1e200));
}

/// Expects that `wait` lasts until its fiber is asked to stop.
template <class Wait>
void expect_waits(std::string_view how_long, Wait wait) {
  pirn::fiber f = pirn::spawn([&] { EXPECT_EQ(wait(), result(std::unexpected(wait_error::stopped))) << how_long; });
  EXPECT_FALSE(f.join(2ms)) << how_long;
  f.request_stop();
  f.join();
}

TEST(deadlines, a_sleep_that_is_too_long_to_count_lasts) {
  for (const bool calling_thread : {false, true}) {
    rig r(1, {.calling_thread = calling_thread});
    r.rt.run([] {
      with_far_away([](std::string_view name, auto how_long) {
        expect_waits(name, [=] { return pirn::this_fiber::sleep_for(how_long); });
        expect_waits(name, [=] { return pirn::this_fiber::sleep_until(how_long); });
        expect_waits(name, [=] {
          return await([](auto time) -> pirn::task<result> { co_return co_await pirn::co::sleep_for(time); }(how_long));
        });
        EXPECT_TRUE(pirn::this_fiber::sleep_for(-how_long)) << name;
      });
      expect_waits("system_clock", [] { return pirn::this_fiber::sleep_until(system_clock::time_point::max()); });
      expect_waits("never", [] { return pirn::this_fiber::sleep_until(pirn::platform::never); });
      EXPECT_TRUE(pirn::this_fiber::sleep_until(clock::time_point::min()));
      EXPECT_TRUE(pirn::this_fiber::sleep_until(system_clock::time_point::min()));
    });
  }
}

/// Calls `check` with each way to wait, until `deadline`, for something that does not come.
template <class Deadline, class Check>
void with_each_wait(Deadline deadline, Check check) {
  pirn::channel<int> channel;
  pirn::counting_semaphore<4> permits(0);
  pirn::event event;
  pirn::local::event local_event;
  pirn::latch latch(1);
  pirn::wait_group group;
  group.add();
  pirn::promise<int> promise;
  const pirn::future<int> future = promise.get_future();
  pirn::fiber sleeper = pirn::spawn([] { static_cast<void>(pirn::this_fiber::sleep_until(pirn::platform::never)); });
  int place = 0;
  const auto error_of = [](const auto& outcome) -> result {
    return outcome ? result() : std::unexpected(outcome.error());
  };
  check("receive", [&] { return error_of(channel.receive(deadline)); });
  check("send", [&] { return channel.send(1, deadline); });
  check("co::receive", [&] {
    const auto receive = [](auto& from, auto until) -> pirn::task<std::expected<int, wait_error>> {
      co_return co_await pirn::co::receive(from, until);
    };
    return error_of(await(receive(channel, deadline)));
  });
  check("select", [&]() -> result {
    const auto done = pirn::select(pirn::receive(channel, place), pirn::until(deadline));
    return done.index == 1 ? std::unexpected(wait_error::timed_out) : done.outcome;
  });
  check("acquire", [&] { return permits.acquire(deadline); });
  check("event", [&] { return event.wait(deadline); });
  check("local::event", [&] { return local_event.wait(deadline); });
  check("latch", [&] { return latch.wait(deadline); });
  check("wait_group", [&] { return group.wait(deadline); });
  check("future", [&] { return future.wait(deadline); });
  check("join", [&] { return sleeper.join(deadline); });
}

TEST(deadlines, every_wait_takes_durations_and_points_of_any_clock) {
  on_one_worker([] {
    const auto expect_times_out = [](std::string_view name, const auto& wait) {
      const auto begin = clock::now();
      EXPECT_EQ(wait(), result(std::unexpected(wait_error::timed_out))) << name;
      EXPECT_LT(clock::now() - begin, 20s) << name;
    };
    with_each_wait(1ms, expect_times_out);
    with_each_wait(0.0005s, expect_times_out);
    with_each_wait(0s, expect_times_out);
    with_each_wait(-std::chrono::years(400), expect_times_out);
    with_each_wait(clock::now() + 0.001s, expect_times_out);
    with_each_wait(system_clock::now(), expect_times_out);
    with_each_wait(std::chrono::floor<std::chrono::seconds>(system_clock::now()), expect_times_out);
    with_each_wait(clock::time_point::min(), expect_times_out);
  });
}

TEST(deadlines, every_wait_lasts_that_ends_too_late_to_count) {
  on_one_worker([] {
    const auto check = [](std::string_view name, const auto& wait) { expect_waits(name, wait); };
    with_each_wait(std::chrono::hours::max(), check);
    with_each_wait(system_clock::time_point::max(), check);
  });
}

template <class Mutex>
void expect_lock_times_out(Mutex& m) {
  m.lock();
  pirn::fiber other = pirn::spawn([&] {
    EXPECT_EQ(m.lock(0.001s), result(std::unexpected(wait_error::timed_out)));
    EXPECT_EQ(m.lock(system_clock::now() + 1ms), result(std::unexpected(wait_error::timed_out)));
    EXPECT_EQ(m.lock(-std::chrono::hours::max()), result(std::unexpected(wait_error::timed_out)));
  });
  other.join();
  expect_waits("lock", [&] { return m.lock(std::chrono::hours::max()); });
  m.unlock();
}

TEST(deadlines, locks_take_them_too) {
  on_one_worker([] {
    pirn::mutex mutex;
    expect_lock_times_out(mutex);
    pirn::biased_mutex biased;
    expect_lock_times_out(biased);
    pirn::recursive_mutex recursive;
    expect_lock_times_out(recursive);
    pirn::shared_mutex shared;
    expect_lock_times_out(shared);
    shared.lock();
    expect_waits("lock_shared", [&] { return shared.lock_shared(std::chrono::hours::max()); });
    shared.unlock();
    pirn::local::mutex local;
    expect_lock_times_out(local);

    pirn::condition_variable changed;
    std::unique_lock lock(mutex);
    EXPECT_EQ(changed.wait(lock, 0.001s), result(std::unexpected(wait_error::timed_out)));
    EXPECT_EQ(changed.wait(lock, [] { return false; }, 0.001s), result(std::unexpected(wait_error::timed_out)));
    EXPECT_EQ(changed.wait(lock, system_clock::now()), result(std::unexpected(wait_error::timed_out)));
    pirn::barrier barrier(2);
    EXPECT_EQ(barrier.arrive_and_wait(0.001s), result(std::unexpected(wait_error::timed_out)));
  });
}

TEST(deadlines, of_scopes) {
  on_one_worker([] {
    const pirn::scope hurried({.deadline = 0.001s});
    EXPECT_EQ(pirn::this_fiber::sleep_for(std::chrono::hours::max()), result(std::unexpected(wait_error::expired)));
  });
  on_one_worker([] {
    const pirn::scope patient({.deadline = std::chrono::hours::max()});
    EXPECT_EQ(pirn::this_fiber::deadline(), pirn::platform::never);
    EXPECT_TRUE(pirn::this_fiber::sleep_for(0.001s));
  });
}

TEST(deadlines, on_a_plain_thread) {
  pirn::channel<int> channel;
  EXPECT_EQ(channel.receive(0.001s).error(), wait_error::timed_out);
  EXPECT_EQ(channel.receive(system_clock::now()).error(), wait_error::timed_out);
  EXPECT_EQ(channel.receive(clock::time_point::min()).error(), wait_error::timed_out);
  for (const pirn::time_limit limit :
       {pirn::time_limit(std::chrono::hours::max()), pirn::time_limit(std::chrono::years(200))}) {
    std::jthread sender([&] {
      std::this_thread::sleep_for(2ms);
      static_cast<void>(channel.send(1));
    });
    EXPECT_EQ(channel.receive(limit), 1);
  }
}

TEST(deadlines, options_of_a_runtime_may_be_as_far_away) {
  constexpr auto for_ever = std::chrono::hours::max();
  rig r(2, {.trim_after = for_ever,
            .idle_spin = for_ever,
            .blocking_idle_time = for_ever,
            .stall_threshold = for_ever,
            .time_slice = for_ever,
            .deadlock_delay = for_ever});
  r.rt.run([] {
    EXPECT_EQ(pirn::blocking([] { return 7; }), 7);
    EXPECT_TRUE(pirn::this_fiber::sleep_for(0.002s));
  });
  rig none(1, {.trim_after = -0.5s,
               .idle_spin = -0.5s,
               .blocking_idle_time = -0.5s,
               .stall_threshold = -0.5s,
               .time_slice = -0.5s,
               .deadlock_delay = 0.5s});
  none.rt.run([] { EXPECT_TRUE(pirn::this_fiber::sleep_for(0.002s)); });
}

}  // namespace
