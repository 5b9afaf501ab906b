// Futures, select and actors: a result comes to all its waiters, exactly one case happens, and calls are made in order.
#include <pirn/sync/actor.hpp>
#include <pirn/sync/future.hpp>
#include <pirn/sync/latch.hpp>
#include <pirn/sync/select.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "pirn/sim/var.hpp"
#include "sim/together.hpp"

using namespace pirn;
using pirn_test::expect_passes;
using pirn_test::run_together;
using pirn_test::soon;

namespace {

// ---- future --------------------------------------------------------------------------------------------------------

TEST(future, gives_the_result_to_all_who_share_it) {
  expect_passes([] {
    auto owner = std::make_unique<promise<int>>();
    sim::var<int> done(0);
    const shared_future<int> one = owner->get_future();
    const shared_future<int> other = one;  // NOLINT(performance-unnecessary-copy-initialization): two share it
    run_together({[&] {
                    done = 1;
                    owner->set_value(7);
                    owner.reset();
                  },
                  [&] {
                    sim::check(one.get() == 7);
                    sim::check(done == 1);
                  },
                  [&] {
                    sim::check(other.get() == 7);
                    sim::check(done == 1);
                  }});
  });
}

TEST(future, tells_of_a_broken_promise) {
  expect_passes([] {
    auto owner = std::make_unique<promise<int>>();
    future<int> result = owner->get_future();
    run_together({[&] { owner.reset(); },
                  [&] {
                    try {
                      static_cast<void>(result.get());
                      sim::check(false, "there is no result");
                    } catch (const future_error& e) {
                      sim::check(e.code() == future_errc::broken_promise);
                    }
                  }});
  });
}

TEST(future, has_one_result_of_two) {
  expect_passes([] {
    promise<int> owner;
    future<int> result = owner.get_future();
    sim::atomic<int> refused = 0;
    const auto provide = [&](int value) {
      return [&, value] {
        try {
          owner.set_value(value);
        } catch (const future_error& e) {
          sim::check(e.code() == future_errc::promise_already_satisfied);
          refused.fetch_add(value);
        }
      };
    };
    int got = 0;
    run_together({provide(1), provide(2), [&] { got = result.get(); }});
    sim::check(got + refused == 3);
  });
}

TEST(future, comes_as_a_deadline_passes) {
  expect_passes([] {
    promise<int> owner;
    future<int> result = owner.get_future();
    const platform::time_point when = soon();
    run_together({[&] {
                    static_cast<void>(this_fiber::sleep_until(when));
                    owner.set_value(7);
                  },
                  [&] {
                    if (const auto got = result.get(when)) {
                      sim::check(*got == 7 && !result.valid());
                    } else {
                      sim::check(result.get() == 7, "it is still there");
                    }
                  }});
  });
}

// ---- select --------------------------------------------------------------------------------------------------------

TEST(select, takes_each_of_those_that_are_ready) {
  for (const auto strategy : {sim::strategy::exhaustive, sim::strategy::random, sim::strategy::pct}) {
    std::set<std::size_t> taken;
    const sim::result found = sim::explore(
        [&] {
          channel<int> first(1), second(1);
          event third;
          pirn_test::run_fibers(
              1, {[&] {
                sim::check(first.send(1) && second.send(2));
                third.set();
                int value = 0;
                taken.insert(select(receive(first, value), receive(second, value), wait(third)).index);
              }});
        },
        {.strategy = strategy, .executions = 200});
    EXPECT_TRUE(found) << found.text();
    EXPECT_EQ(taken.size(), 3U);
  }
}

/// One fiber selects from two channels and a timer. At that time other fibers send to the channels.
void two_channels_and_a_timer(std::size_t capacity) {
  channel<int> a(capacity);
  channel<int> b(capacity);
  const platform::time_point when = soon();
  int sent[2] = {0, 0};
  int received[2] = {0, 0};
  selection fired{9, {}};
  const auto send_to = [&](channel<int>& to, int which) {
    return [&to, &sent, which, when] {
      static_cast<void>(this_fiber::sleep_until(when));
      sent[which] = to.send(which + 1, when).has_value() ? which + 1 : 0;
    };
  };
  run_together({send_to(a, 0), send_to(b, 1),
                [&] { fired = select(receive(a, received[0]), receive(b, received[1]), until(when)); }});
  sim::check(fired.outcome.has_value() && fired.index < 3);
  for (std::size_t i = 0; i < 2; ++i) {
    channel<int>& from = i == 0 ? a : b;
    sim::check((received[i] != 0) == (fired.index == i), "exactly one case did something");
    sim::check(sent[i] == received[i] + from.try_receive().value_or(0), "what was sent is received or still there");
  }
}
TEST(select, takes_one_of_two_values_or_the_time) {
  expect_passes([] { two_channels_and_a_timer(1); });
}
TEST(select, meets_one_of_two_senders_or_the_time) {
  expect_passes([] { two_channels_and_a_timer(0); });
}

TEST(select, meets_another_select) {
  expect_passes([] {
    channel<int> a;
    channel<int> b;
    int left = 0;
    int right = 0;
    selection one{9, {}};
    selection other{9, {}};
    run_together(
        {[&] { one = select(send(a, 1), receive(b, left)); }, [&] { other = select(send(b, 2), receive(a, right)); }});
    sim::check(one.index == 1 - other.index && one.outcome && other.outcome, "one sends what the other receives");
    sim::check(one.index == 0 ? right == 1 && left == 0 : left == 2 && right == 0);
  });
}

TEST(select, takes_an_event_back_only_if_that_is_its_case) {
  expect_passes([] {
    event one(event_reset::automatic);
    event other(event_reset::automatic);
    selection fired{9, {}};
    run_together({[&] { one.set(); }, [&] { other.set(); }, [&] { fired = select(wait(one), wait(other)); }});
    sim::check(fired.outcome && fired.index < 2);
    sim::check(one.try_wait() == (fired.index == 1) && other.try_wait() == (fired.index == 0));
  });
}

TEST(select, is_stopped_as_a_value_comes) {
  expect_passes([] {
    channel<int> values(1);
    event never_set;
    std::vector<fiber> fibers;
    int received = 0;
    selection fired{9, {}};
    run_together({[&] { fired = select(receive(values, received), wait(never_set)); },
                  [&] { fibers[0].request_stop(); }, [&] { sim::check(values.send(1).has_value()); }},
                 {.fibers = &fibers});
    sim::check(fired.index == (received == 1 ? 0u : 2u) && fired.outcome.has_value() == (received == 1));
    sim::check(static_cast<int>(values.size()) == 1 - received);
    never_set.set();
    sim::check(never_set.wait().has_value());
  });
}

// ---- actor ---------------------------------------------------------------------------------------------------------

TEST(actor, does_what_was_sent_in_order) {
  expect_passes([] {
    std::optional<actor<std::vector<int>>> list;
    latch sent(2);
    const auto post = [&](int first) {
      return [&, first] {
        sim::check(list->post([first](auto& all) { all.push_back(first); }));
        sim::check(list->post([first](auto& all) { all.push_back(first + 1); }));
        sent.count_down();
      };
    };
    run_together({[&] {
                    static_cast<void>(sent.wait());
                    const auto all = list->call([](auto& state) { return state; });
                    sim::check(all.size() == 4, "all was done before");
                    sim::check(std::ranges::find(all, 10) < std::ranges::find(all, 11));
                    sim::check(std::ranges::find(all, 20) < std::ranges::find(all, 21));
                    list.reset();
                  },
                  post(10), post(20)},
                 {.before = [&] { list.emplace(); }});
  });
}

TEST(actor, answers_who_calls_it) {
  expect_passes([] {
    std::optional<actor<sim::var<int>>> number;
    latch done(2);
    const auto call = [&] {
      const int before = number->call([](auto& state) {
        const int found = state;
        state += 1;
        return found;
      });
      sim::check(before == 0 || before == 1);
      done.count_down();
    };
    run_together({[&] {
                    static_cast<void>(done.wait());
                    sim::check(number->call([](auto& state) { return state.get(); }) == 2);
                    number.reset();
                  },
                  call, call},
                 {.before = [&] { number.emplace(0); }});
  });
}

TEST(actor, does_what_it_took_before_it_was_closed) {
  expect_passes([] {
    std::optional<actor<int>> counter;
    latch sent(1);
    int taken = 0;
    int done = 0;
    run_together({[&] {
                    counter->close();
                    static_cast<void>(sent.wait());
                    counter.reset();
                  },
                  [&] {
                    for (int i = 0; i < 2; ++i) {
                      taken += counter->post([&](int&) { ++done; }) ? 1 : 0;
                    }
                    sent.count_down();
                  }},
                 {.before = [&] { counter.emplace(0); }});
    sim::check(done == taken);
  });
}

}  // namespace
