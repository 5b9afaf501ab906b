// Stackless coroutines on the workers of fibers: each of their awaits ends once, wherever the other side is.
#include <pirn/fiber/spawned.hpp>
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

TEST(task, is_resumed_by_a_worker_whose_other_tasks_run_all_the_time) {
  expect_passes([] {
    channel<int> values(1);
    const auto yields = []() -> task<> {
      for (int i = 0; i < 3; ++i) {
        co_await co::yield();
      }
    };
    run_together({[&] {
                    fiber beside = spawn([&] { await(yields()); });
                    sim::check(await(receive_all(values)) == 1);
                    beside.join();
                  },
                  [&] { await(send_two(values)); }});
  });
}

task<bool> receive_or_stop(channel<int>& from) {
  const auto value = co_await co::receive(from);
  co_return ended_well(value, wait_error::stopped);
}

TEST(task, a_stop_ends_its_receive_or_the_value_arrives) {
  expect_both([] {
    channel<int> values(0);
    std::vector<fiber> fibers;
    bool received = false;
    bool sent = false;
    run_together({[&] { received = await(receive_or_stop(values)); }, [&] { fibers[0].request_stop(); },
                  [&] { sent = values.try_send(1).has_value(); }},
                 {.fibers = &fibers});
    sim::check(received == sent, "neither lost nor doubled");
  });
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

TEST(spawned, is_stopped_and_joined_from_another_worker) {
  expect_both([] {
    event happened;
    event joined;
    spawned<> task;
    run_together({[&] {
                    this_fiber::yield();  // to the task
                    this_fiber::yield();
                    happened.set();
                    sim::check(joined.wait().has_value());
                  },
                  [&] {
                    task.request_stop();
                    task.join();
                    joined.set();
                  }},
                 {.before = [&] { task = co::spawn(wait_for(happened)); }});
  });
}

/// An argument of a task: says when the task is destroyed.
class leaves {
 public:
  leaves(event& gone, int& count) noexcept : gone_(&gone), count_(&count) {}
  leaves(leaves&& other) noexcept : gone_(std::exchange(other.gone_, nullptr)), count_(other.count_) {}
  leaves& operator=(leaves&&) = delete;
  ~leaves() {
    if (gone_ != nullptr) {
      ++*count_;
      gone_->set();
    }
  }

 private:
  event* gone_;
  int* count_;
};
task<> ends(leaves /*what*/) { co_return; }

TEST(spawned, is_destroyed_once_by_its_end_or_by_its_handle) {
  for (const bool join : {false, true}) {
    expect_passes([join] {
      event gone;
      int destroyed = 0;
      spawned<> task;
      run_together({[&] { sim::check(gone.wait().has_value()); }, [&] { join ? task.join() : task.detach(); }},
                   {.before = [&] { task = co::spawn(ends(leaves(gone, destroyed))); }});
      sim::check(destroyed == 1, "once");
    });
  }
}

TEST(spawned, of_a_scope_is_stopped_with_it_or_has_ended) {
  expect_both([] {
    event happened;
    std::vector<fiber> fibers;
    run_together({[&] {
                    scope s;
                    co::spawn(s, wait_for(happened));
                    s.join();
                  },
                  [&] { fibers[0].request_stop(); }, [&] { happened.set(); }},
                 {.fibers = &fibers});
  });
}

}  // namespace
