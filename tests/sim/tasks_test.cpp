// Stackless coroutines on the workers of fibers: each of their awaits ends once, wherever the other side is.
#include <pirn/fiber/task.hpp>
#include <pirn/sync/co.hpp>
#include <pirn/sync/event.hpp>

#include "sim/both_ways.hpp"
#include "sim/together.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using pirn_test::ended_well;
using pirn_test::expect_both;
using pirn_test::expect_passes;
using pirn_test::run_together;

namespace {

task<> send_two(channel<int>& to) {
  for (int i = 0; i < 2; ++i) {
    sim::check((co_await co::send(to, int{i})).has_value());
  }
  to.close();
}
task<int> receive_all(channel<int>& from) {
  int sum = 0;
  int expected = 0;
  while (const auto value = co_await co::receive(from)) {
    sim::check(*value == expected++, "in their order");
    sum += *value;
  }
  co_return sum;
}

TEST(task, exchanges_values_with_a_task_of_another_worker) {
  for (const std::size_t room : {std::size_t{0}, std::size_t{1}}) {
    expect_passes([room] {
      channel<int> values(room);
      run_together({[&] { await(send_two(values)); }, [&] { sim::check(await(receive_all(values)) == 1); }});
    });
  }
}

TEST(task, exchanges_values_with_a_fiber_and_with_a_thread) {
  for (const unsigned threads : {0U, 1U}) {
    expect_passes([threads] {
      channel<int> values(0);
      run_together({[&] { sim::check(await(receive_all(values)) == 1); },
                    [&] {
                      sim::check(values.send(0).has_value() && values.send(1).has_value());
                      values.close();
                    }},
                   {.threads = threads});
    });
  }
}

task<> wait_for(event& happened) {
  ended_well((co_await co::select(pirn::wait(happened))).outcome, wait_error::stopped);
}

TEST(task, a_stop_of_its_fiber_ends_its_wait_or_comes_too_late) {
  expect_both([] {
    event happened;
    std::vector<fiber> fibers;
    run_together({[&] { await(wait_for(happened)); }, [&] { fibers[0].request_stop(); }, [&] { happened.set(); }},
                 {.fibers = &fibers});
  });
}

task<> wait_until(event& happened) {
  const selection fired = co_await co::select(pirn::wait(happened), until(pirn_test::soon()));
  sim::check(fired.index < 2);
  ++(fired.index == 0 ? pirn_test::seen_to_end.notified : pirn_test::seen_to_end.otherwise);
}

TEST(task, a_deadline_ends_its_wait_or_comes_too_late) {
  expect_both([] {
    event happened;
    run_together({[&] { await(wait_until(happened)); },
                  [&] {
                    static_cast<void>(this_fiber::sleep_until(pirn_test::soon()));
                    happened.set();
                  }});
  });
}

TEST(task, awaits_a_fiber_of_another_worker) {
  expect_passes([] {
    int made = 0;
    pirn_test::run_fibers(2, {[&] {
                            fiber other = spawn([&] { made = 1; }, {.worker = 1});
                            const auto join = [](fiber& f) -> task<> { co_await f; };
                            await(join(other));
                            sim::check(made == 1, "it has ended");
                          }});
  });
}

TEST(task, sleeps_and_yields_beside_others) {
  expect_passes([] {
    int turns = 0;
    const auto sleeper = [](int& count) -> task<> {
      sim::check((co_await co::sleep_for(1ms)).has_value());
      ++count;
      co_await co::yield();
      ++count;
    };
    pirn_test::run_fibers(1, {[&] { await(sleeper(turns)); }, [&] { await(sleeper(turns)); }});
    sim::check(turns == 4);
  });
}

}  // namespace
