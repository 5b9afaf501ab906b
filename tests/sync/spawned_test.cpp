// Tasks without a fiber that awaits them: pirn/fiber/spawned.hpp.
#include "pirn/fiber/spawned.hpp"

#include <memory>
#include <stdexcept>
#include <string_view>

#include "fiber/support.hpp"
#include "pirn/sync/co.hpp"
#include "pirn/sync/event.hpp"

namespace {

using namespace pirn_test;
using pirn::spawned;
using pirn::task;
using pirn::wait_error;
namespace co = pirn::co;

task<int> twice(int number) {
  co_await co::yield();
  co_return 2 * number;
}
task<> fails() {
  co_await co::yield();
  throw std::runtime_error("x");
}
task<std::expected<void, wait_error>> sleeps(pirn::time_span how_long) { co_return co_await co::sleep_for(how_long); }

TEST(spawned, runs_without_a_fiber_and_is_joined_by_fibers_threads_and_tasks) {
  rig r(2);
  r.rt.run([] {
    spawned<int> first = co::spawn(twice(4));
    EXPECT_TRUE(first.joinable());
    EXPECT_EQ(first.join(), 8);
    EXPECT_FALSE(first.joinable());
    const auto sum = []() -> task<int> {
      spawned<int> a = co::spawn(twice(1));
      spawned<int> b = co::spawn(twice(2));
      const int second = co_await b;
      EXPECT_FALSE(b.joinable());
      co_return co_await std::move(a) + second;
    };
    EXPECT_EQ(co::spawn(sum()).join(), 6);
    spawned<int> elsewhere = co::spawn(twice(5));
    pirn::spawn([&] { EXPECT_EQ(elsewhere.join(), 10); }, {.worker = 1}).join();
    spawned<int> outside = co::spawn(twice(6));
    std::atomic<bool> joined = false;
    std::thread thread([&] {
      EXPECT_EQ(outside.join(), 12);
      joined = true;
    });
    EXPECT_TRUE(eventually([&] { return joined.load(); }));
    thread.join();
    int place = 1;
    const auto referring = [&]() -> task<int&> { co_return place; };
    co::spawn(referring()).join() = 5;
    EXPECT_EQ(place, 5);
  });
}

TEST(spawned, rethrows_and_refuses_an_empty_handle) {
  rig r(1);
  r.rt.run([] {
    EXPECT_THROW(co::spawn(fails()).join(), std::runtime_error);
    const auto joins = []() -> task<> {
      spawned<> other = co::spawn(fails());
      EXPECT_THROW(co_await other, std::runtime_error);
      EXPECT_THROW(co_await other, std::system_error);
    };
    co::spawn(joins()).join();
    spawned<> none;
    EXPECT_THROW(none.join(), std::system_error);
    none.request_stop();
    none.detach();
  });
  EXPECT_THROW(static_cast<void>(co::spawn(twice(1))), std::system_error) << "on a plain thread";
}

TEST(spawned, is_stopped_before_or_while_it_waits) {
  rig r(1);
  r.rt.run([] {
    spawned<std::expected<void, wait_error>> early = co::spawn(sleeps(1h));
    early.request_stop();
    EXPECT_EQ(early.join().error(), wait_error::stopped);
    spawned<std::expected<void, wait_error>> late = co::spawn(sleeps(1h));
    EXPECT_EQ(late.join(clock::now() + 1ms).error(), wait_error::timed_out);
    EXPECT_TRUE(late.joinable());
    late.request_stop();
    EXPECT_EQ(late.join(clock::now() + 1h)->error(), wait_error::stopped);
    const auto began = clock::now();
    {
      const spawned<std::expected<void, wait_error>> dropped = co::spawn(sleeps(1h));
    }
    EXPECT_LT(clock::now() - began, 1h);
    late = co::spawn(sleeps(1h));
    late = co::spawn(sleeps(1us));
    EXPECT_TRUE(late.join().has_value());
  });
}

TEST(spawned, detached_is_destroyed_at_its_end_which_the_runtime_awaits) {
  const auto value = std::make_shared<int>(0);
  {
    rig r(1);
    r.rt.run([&] {
      const auto counts = [](std::shared_ptr<int> of, pirn::time_span after) -> task<> {
        static_cast<void>(co_await co::sleep_for(after));
        ++*of;
      };
      co::spawn(counts(value, 1ms)).detach();
      co::spawn(counts(value, 0ms)).detach();
      spawned<> ended = co::spawn(counts(value, 0ms));
      EXPECT_TRUE(eventually([&] { return *value == 3; }));
      ended.detach();
      EXPECT_TRUE(eventually([&] { return value.use_count() == 1; }));
      co::spawn(counts(value, 1ms)).detach();
    });
  }
  EXPECT_EQ(*value, 4);
  EXPECT_EQ(value.use_count(), 1);
}

std::string reported;

TEST(spawned, tells_the_handler_of_an_exception_that_is_not_joined) {
  const auto before = pirn::set_unhandled_exception_handler(
      // NOLINTNEXTLINE(performance-unnecessary-value-param): the type of a handler
      [](std::uint64_t, std::string_view name, std::exception_ptr) noexcept { reported += name; });
  {
    rig r(1);
    r.rt.run([] {
      co::spawn(fails()).detach();
      const spawned<> dropped = co::spawn(fails());
    });
  }
  pirn::set_unhandled_exception_handler(before);
  EXPECT_EQ(reported, "a taska task");
}

TEST(spawned, belongs_to_a_scope) {
  rig r(2);
  r.rt.run([] {
    int ended = 0;
    const auto waits = [&](pirn::time_span how_long, wait_error why) -> task<> {
      const auto slept = co_await co::sleep_for(how_long);
      EXPECT_TRUE(slept || slept.error() == why);
      ++ended;
    };
    {
      pirn::scope s;
      co::spawn(s, waits(1ms, wait_error::stopped));
      co::spawn(s, waits(1us, wait_error::stopped));
      s.join();
      EXPECT_EQ(ended, 2);
      co::spawn(s, waits(1h, wait_error::stopped));
      s.request_stop();
      s.join();
      EXPECT_EQ(ended, 3);
    }
    {
      pirn::scope s({.deadline = clock::now() + 1ms});
      co::spawn(s, waits(1h, wait_error::expired));
      s.join();
      EXPECT_EQ(ended, 4);
    }
    {
      pirn::scope s;
      co::spawn(s, waits(1h, wait_error::stopped));
      co::spawn(s, fails());
      EXPECT_THROW(s.join(), std::runtime_error);
      EXPECT_EQ(ended, 5);
    }
    {
      pirn::scope s;
      co::spawn(s, waits(1h, wait_error::stopped));
      pirn::spawn([&] { s.request_stop(); }, {.worker = 1}).join();
    }
    EXPECT_EQ(ended, 6);
  });
}

TEST(spawned, a_hundred_thousand_wait_at_once) {
  rig r(1);
  r.rt.run([] {
    constexpr int many = scaled(100'000);
    pirn::event gate;
    int passed = 0;
    const auto waits = [&]() -> task<> {
      EXPECT_TRUE((co_await co::select(pirn::wait(gate))).outcome.has_value());
      ++passed;
    };
    pirn::scope s;
    for (int i = 0; i < many; ++i) {
      co::spawn(s, waits());
    }
    pirn::this_fiber::yield();
    gate.set();
    s.join();
    EXPECT_EQ(passed, many);
  });
}

}  // namespace
