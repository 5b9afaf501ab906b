// Channels: every value goes to one receiver, in order. No deadline, stop or close loses a value.
#include <pirn/sync/channel.hpp>

#include <array>
#include <deque>

#include "pirn/sim/var.hpp"
#include "sim/together.hpp"

using namespace pirn;
using pirn_test::expect_passes;
using pirn_test::run_together;
using pirn_test::soon;

namespace {

/// Two senders of two values each, and one receiver of all, which gets each sender's values in order.
void sends_in_order(std::size_t capacity) {
  channel<int> values(capacity);
  const auto send_from = [&](int first) {
    return [&, first] {
      sim::check(values.send(int(first)).has_value());
      sim::check(values.send(first + 1).has_value());
    };
  };
  run_together({send_from(10), send_from(20), [&] {
                  std::array<int, 2> next = {10, 20};
                  for (int i = 0; i < 4; ++i) {
                    const auto got = values.receive();
                    sim::check(got.has_value());
                    int& expected = next[static_cast<std::size_t>(*got / 10 - 1)];
                    sim::check(*got == expected, "the values of one sender come in order");
                    ++expected;
                  }
                }});
  sim::check(values.size() == 0);
}
TEST(channel, meets_in_order) {
  expect_passes([] { sends_in_order(0); });
}
TEST(channel, keeps_order_with_room_for_one) {
  expect_passes([] { sends_in_order(1); });
}
TEST(channel, keeps_order_without_bound) {
  expect_passes([] { sends_in_order(unbounded); });
}

TEST(channel, shows_what_was_done_before_the_send) {
  expect_passes([] {
    channel<sim::var<int>*> values;
    sim::var<int> one(0);
    sim::var<int> other(0);
    const auto send = [&](sim::var<int>& what) {
      return [&] {
        what = 1;
        sim::check(values.send(&what).has_value());
      };
    };
    run_together({send(one), send(other), [&] {
                    for (int i = 0; i < 2; ++i) {
                      sim::check(**values.receive() == 1);
                    }
                  }});
  });
}

TEST(channel, grows_while_it_is_emptied) {
  expect_passes([] {
    channel<int> values(unbounded);
    run_together({[&] {
                    values.send(15).value();
                    values.send(16).value();
                    values.send(17).value();
                  },
                  [&] {
                    for (int i = 0; i < 17; ++i) {
                      sim::check(*values.receive() == i);
                    }
                  }},
                 {.before = [&] {
                   for (int i = 0; i < 15; ++i) {
                     values.send(int(i)).value();
                   }
                 }});
    sim::check(*values.try_receive() == 17 && !values.try_receive());
  });
}

TEST(channel, gives_all_that_was_sent_before_it_was_closed) {
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}}) {
    expect_passes([capacity] {
      channel<int> values(capacity);
      int sent = 0;
      int received = 0;
      run_together({[&] {
                      for (int i = 0; i < 2 && values.send(int(i)).has_value(); ++i) {
                        ++sent;
                      }
                    },
                    [&] {
                      for (const int each : values) {
                        sim::check(each == received, "in order");
                        ++received;
                      }
                    },
                    [&] { values.close(); }});
      sim::check(sent == received);
    });
  }
}

TEST(channel, lets_all_go_that_wait_when_it_is_closed) {
  expect_passes([] {
    channel<int> values(1);
    const auto send = [&] {
      const auto sent = values.send(2);
      sim::check(!sent && sent.error() == wait_error::closed);
    };
    run_together({send, send, [&] { values.close(); }}, {.before = [&] { values.send(1).value(); }});
    sim::check(*values.try_receive() == 1 && values.try_receive().error() == wait_error::closed);
  });
}

TEST(channel, receives_as_a_deadline_passes) {
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}}) {
    expect_passes([capacity] {
      channel<int> values(capacity);
      const platform::time_point when = soon();
      bool received = false;
      bool refused = false;
      run_together({[&] {
                      static_cast<void>(this_fiber::sleep_until(when));
                      refused = !values.send(1, when).has_value();
                    },
                    [&] { received = values.receive(when).has_value(); }});
      // The value is in exactly one place.
      sim::check(received + refused + static_cast<int>(values.size()) == 1, "neither lost nor doubled");
    });
  }
}

TEST(channel, sends_as_a_deadline_passes) {
  expect_passes([] {
    channel<int> values(1);
    const platform::time_point when = soon();
    run_together(
        {[&] {
           static_cast<void>(this_fiber::sleep_until(when));
           sim::check(*values.receive() == 0, "in order");
         },
         [&] {
           if (values.send(1, when)) {
             static_cast<void>(values.receive());
           }
         },
         [&] { sim::check(values.send(2).has_value(), "who waits for room gets what the other one did not"); }},
        {.before = [&] { values.send(0).value(); }});
    sim::check(values.size() == 1);
  });
}

TEST(channel, receives_as_a_stop_comes) {
  expect_passes([] {
    channel<int> values;
    std::vector<fiber> fibers;
    int received = 0;
    const auto take = [&] { received += values.receive().has_value() ? 1 : 0; };
    run_together({[&] {
                    fibers[1].request_stop();
                    sim::check(values.send(1).has_value());
                  },
                  [&] {
                    if (values.receive()) {
                      ++received;
                      values.close();  // otherwise the other receiver would wait for ever
                    }
                  },
                  take},
                 {.fibers = &fibers});
    sim::check(received == 1);
  });
}

// ---- linearisability -----------------------------------------------------------------------------------------------

/// The history of overlapping calls of several fibers that only try.
class history {
 public:
  explicit history(std::size_t capacity) : values_(capacity), capacity_(capacity) {}

  void send(int value) {
    call made{.sends = true, .value = value, .begun = now_.fetch_add(1)};
    made.done = values_.try_send(int(value)).has_value();
    made.ended = now_.fetch_add(1);
    calls_.push_back(made);
  }
  void receive() {
    call made{.begun = now_.fetch_add(1)};
    const auto got = values_.try_receive();
    made.done = got.has_value();
    made.value = got.value_or(0);
    made.ended = now_.fetch_add(1);
    calls_.push_back(made);
  }
  /// Returns whether the calls could have answered so one after the other, in an order in which no call precedes
  /// another one that had ended when it began.
  [[nodiscard]] bool explained() const { return explained_from({}, 0); }

 private:
  struct call {
    bool sends = false;
    bool done = false;
    int value = 0;
    unsigned begun = 0;
    unsigned ended = 0;
  };

  [[nodiscard]] bool explained_from(const std::deque<int>& queue, unsigned taken) const {
    bool all = true;
    for (unsigned i = 0; i < calls_.size(); ++i) {
      if ((taken & 1u << i) != 0) {
        continue;
      }
      all = false;
      const call& next = calls_[i];
      bool first = true;
      for (unsigned k = 0; k < calls_.size(); ++k) {
        first = first && ((taken & 1u << k) != 0 || calls_[k].ended >= next.begun || k == i);
      }
      std::deque<int> after = queue;
      if (first && answers(next, after) && explained_from(after, taken | 1u << i)) {
        return true;
      }
    }
    return all;
  }
  [[nodiscard]] bool answers(const call& what, std::deque<int>& queue) const {
    if (what.sends) {
      if (what.done) {
        queue.push_back(what.value);
      }
      return what.done ? queue.size() <= capacity_ : queue.size() == capacity_;
    }
    if (!what.done) {
      return queue.empty();
    }
    const bool right = !queue.empty() && queue.front() == what.value;
    if (right) {
      queue.pop_front();
    }
    return right;
  }

  channel<int> values_;
  const std::size_t capacity_;
  sim::atomic<unsigned> now_ = 0;
  std::vector<call> calls_;
};

TEST(channel, is_linearisable) {
  expect_passes(
      [] {
        history calls(1);
        run_together({[&] {
                        calls.send(1);
                        calls.send(2);
                      },
                      [&] {
                        calls.receive();
                        calls.send(3);
                      },
                      [&] {
                        calls.receive();
                        calls.receive();
                      }});
        sim::check(calls.explained(), "no order of the calls explains their answers");
      },
      {.preemptions = 3});
}

}  // namespace
