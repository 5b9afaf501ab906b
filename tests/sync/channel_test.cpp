// Channels of all capacities: order, meetings, `close`, values that throw, and `wake_policy::switch_over`.
#include "pirn/sync/channel.hpp"

#include <memory>
#include <numeric>
#include <string>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::channel;
using pirn::wait_error;

/// Returns an rvalue of a value that may be used again if it is not taken.
template <class T>
T&& offer(T& value) {
  return static_cast<T&&>(value);
}

TEST(channel, keeps_the_order) {
  rig r(1);
  channel<int> c(3);
  EXPECT_EQ(c.capacity(), 3u);
  r.rt.run([&] {
    EXPECT_TRUE(c.send(1).has_value());
    const int two = 2;
    EXPECT_TRUE(c.send(two).has_value());
    EXPECT_TRUE(c.try_send(3).has_value());
    EXPECT_EQ(c.try_send(4).error(), wait_error::timed_out);
    EXPECT_EQ(c.size(), 3u);
    for (int i = 1; i <= 3; ++i) {
      EXPECT_EQ(c.receive().value(), i);
    }
    EXPECT_EQ(c.try_receive().error(), wait_error::timed_out);
  });
}

TEST(channel, without_room_sender_and_receiver_meet) {
  rig r(1);
  r.rt.run([&] {
    channel<int> c;
    EXPECT_EQ(c.capacity(), 0u);
    EXPECT_EQ(c.try_send(1).error(), wait_error::timed_out);
    EXPECT_EQ(c.try_receive().error(), wait_error::timed_out);
    bool sent = false;
    pirn::fiber f = pirn::spawn([&] {
      EXPECT_TRUE(c.send(2).has_value());
      sent = true;
    });
    pirn::this_fiber::yield();
    EXPECT_FALSE(sent);
    EXPECT_EQ(c.size(), 0u);
    EXPECT_EQ(c.try_receive().value(), 2);
    f.join();
    EXPECT_TRUE(sent);
    pirn::fiber g = pirn::spawn([&] { EXPECT_EQ(c.receive().value(), 3); });
    pirn::this_fiber::yield();
    EXPECT_TRUE(c.try_send(3).has_value());
    g.join();
    EXPECT_EQ(c.send(4, clock::now() + 1ms).error(), wait_error::timed_out);
    EXPECT_EQ(c.try_receive().error(), wait_error::timed_out);
  });
}

TEST(channel, unbounded_never_waits_to_send_and_keeps_the_order) {
  channel<std::unique_ptr<int>> c(pirn::unbounded);
  EXPECT_EQ(c.capacity(), pirn::unbounded);
  int sent = 0;
  int received = 0;
  // Grows while there are values at the front, is emptied, wraps round, grows again, and is destroyed with some values.
  for (const auto& [more, fewer] : {std::pair(10, 5), {100, 90}, {3, 18}, {1000, 500}, {20, 520}, {5000, 10}}) {
    for (int i = 0; i < more; ++i) {
      ASSERT_TRUE(c.try_send(std::make_unique<int>(sent++)).has_value());
    }
    for (int i = 0; i < fewer; ++i) {
      ASSERT_EQ(**c.try_receive(), received++);
    }
    EXPECT_EQ(c.size(), static_cast<std::size_t>(sent - received));
  }
}

class capacities : public testing::TestWithParam<std::size_t> {};

TEST_P(capacities, passes_everything_once_and_in_the_order_of_each_sender) {
  rig r(3);
  channel<std::unique_ptr<std::pair<int, int>>> c(GetParam());
  const int each = scaled(5000);
  std::atomic<long> received = 0;
  const auto send_all = [&](int who) {
    for (int i = 0; i < each; ++i) {
      ASSERT_TRUE(c.send(std::make_unique<std::pair<int, int>>(who, i)).has_value());
    }
  };
  const auto receive_all = [&] {
    std::array<int, 4> last = {-1, -1, -1, -1};
    for (const auto& value : c) {
      int& before = last[static_cast<std::size_t>(value->first)];
      EXPECT_LT(before, value->second);
      before = value->second;
      ++received;
    }
  };
  std::vector<pirn::fiber> receivers;
  for (int i = 0; i < 3; ++i) {
    receivers.push_back(r.rt.spawn(receive_all));
  }
  std::jthread receiving_thread(receive_all);
  std::vector<pirn::fiber> senders;
  for (int who = 0; who < 3; ++who) {
    senders.push_back(r.rt.spawn([&, who] { send_all(who); }));
  }
  send_all(3);
  join_all(senders);
  c.close();
  join_all(receivers);
  receiving_thread.join();
  EXPECT_EQ(received, 4L * each);
}

INSTANTIATE_TEST_SUITE_P(sizes, capacities, testing::Values(0u, 1u, 2u, 64u, pirn::unbounded));

TEST(channel, hands_over_to_a_waiting_receiver) {
  rig r(1);
  channel<std::unique_ptr<int>> c(1);
  r.rt.run([&] {
    pirn::fiber f = pirn::spawn([&] { EXPECT_EQ(**c.receive(), 5); });
    pirn::this_fiber::yield();
    EXPECT_TRUE(c.try_send(std::make_unique<int>(5)).has_value());
    EXPECT_EQ(c.size(), 0u);  // it never was in the channel
    EXPECT_TRUE(c.try_send(std::make_unique<int>(6)).has_value());
    EXPECT_EQ(c.size(), 1u);
    f.join();
    EXPECT_EQ(**c.receive(), 6);
  });
}

TEST(channel, a_receiver_fills_the_free_place_from_a_waiting_sender) {
  rig r(1);
  channel<int> c(1);
  r.rt.run([&] {
    EXPECT_TRUE(c.send(1).has_value());
    pirn::fiber second = pirn::spawn([&] { EXPECT_TRUE(c.send(2).has_value()); });
    pirn::fiber third = pirn::spawn([&] { EXPECT_TRUE(c.send(3).has_value()); });
    pirn::this_fiber::yield();
    EXPECT_EQ(c.try_receive().value(), 1);
    EXPECT_EQ(c.size(), 1u);
    EXPECT_EQ(c.try_send(9).error(), wait_error::timed_out);  // no overtaking
    EXPECT_EQ(c.receive().value(), 2);
    EXPECT_EQ(c.receive().value(), 3);
    second.join();
    third.join();
  });
}

TEST(channel, close_lets_the_rest_be_received) {
  rig r(2);
  channel<std::string> c(4);
  EXPECT_TRUE(c.send("a").has_value());
  EXPECT_TRUE(c.send("b").has_value());
  EXPECT_FALSE(c.closed());
  c.close();
  c.close();
  EXPECT_TRUE(c.closed());
  std::string kept = "kept";
  EXPECT_EQ(c.send(offer(kept)).error(), wait_error::closed);
  EXPECT_EQ(kept, "kept");
  EXPECT_EQ(c.try_send(kept).error(), wait_error::closed);
  EXPECT_EQ(c.receive().value(), "a");
  EXPECT_EQ(c.try_receive().value(), "b");
  EXPECT_EQ(c.receive().error(), wait_error::closed);
  EXPECT_EQ(c.try_receive().error(), wait_error::closed);
  for (const std::string& none : c) {
    ADD_FAILURE() << none;
  }
}

TEST(channel, close_wakes_those_that_wait) {
  rig r(2);
  channel<std::unique_ptr<int>> full(1);
  channel<int> empty(1);
  EXPECT_TRUE(full.send(std::make_unique<int>(1)).has_value());
  std::vector<pirn::fiber> all;
  std::atomic<int> ended = 0;
  for (int i = 0; i < 4; ++i) {
    all.push_back(r.rt.spawn([&] {
      auto value = std::make_unique<int>(7);
      EXPECT_EQ(full.send(offer(value)).error(), wait_error::closed);
      EXPECT_EQ(*value, 7);  // not lost
      ++ended;
    }));
    all.push_back(r.rt.spawn([&] {
      EXPECT_EQ(empty.receive().error(), wait_error::closed);
      ++ended;
    }));
  }
  std::this_thread::sleep_for(2ms);
  EXPECT_EQ(ended, 0);
  full.close();
  empty.close();
  join_all(all);
  EXPECT_EQ(**full.receive(), 1);
}

TEST(channel, on_an_error_the_value_is_untouched) {
  rig r(1);
  channel<std::unique_ptr<int>> c(1);
  EXPECT_TRUE(c.send(std::make_unique<int>(1)).has_value());
  auto value = std::make_unique<int>(2);
  EXPECT_EQ(c.try_send(offer(value)).error(), wait_error::timed_out);
  EXPECT_EQ(c.send(offer(value), clock::now() + 1ms).error(), wait_error::timed_out);
  pirn::fiber f = r.rt.spawn([&] { EXPECT_EQ(c.send(offer(value)).error(), wait_error::stopped); });
  std::this_thread::sleep_for(1ms);
  f.request_stop();
  f.join();
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(**c.receive(), 1);
  EXPECT_TRUE(c.send(offer(value)).has_value());
  EXPECT_EQ(**c.receive(), 2);
}

TEST(channel, gives_up_receiving) {
  rig r(1);
  channel<int> c(1);
  EXPECT_EQ(c.receive(clock::now() + 1ms).error(), wait_error::timed_out);
  std::atomic<bool> timed_out = false;
  pirn::fiber f = r.rt.spawn([&] {
    EXPECT_EQ(c.receive(clock::now() + 1ms).error(), wait_error::timed_out);
    timed_out = true;
    EXPECT_EQ(c.receive().error(), wait_error::stopped);
    for (const int none : c) {  // a stop ends the loop too
      ADD_FAILURE() << none;
    }
    EXPECT_TRUE(c.send(1).has_value());  // neither needs to wait
    EXPECT_EQ(c.receive().value(), 1);
  });
  EXPECT_TRUE(eventually([&] { return timed_out.load(); }));
  f.request_stop();
  f.join();
}

TEST(channel, destroys_what_nobody_received) {
  const auto value = std::make_shared<int>(1);
  {
    channel<std::shared_ptr<int>> c(3);
    EXPECT_TRUE(c.send(value).has_value());
    EXPECT_TRUE(c.receive().has_value());
    for (int i = 0; i < 3; ++i) {  // wraps round
      EXPECT_TRUE(c.send(value).has_value());
    }
    EXPECT_EQ(value.use_count(), 4);
  }
  EXPECT_EQ(value.use_count(), 1);
}

struct alignas(128) wide {
  int value;
};

TEST(channel, over_aligned_values) {
  channel<wide> c(2);
  EXPECT_TRUE(c.send(wide{4}).has_value());
  EXPECT_EQ(c.receive()->value, 4);
}

/// Throws when moved while `fuse` is 0; counts down before that. Moving leaves the source as it was if it throws.
struct touchy {
  static inline int fuse = -1;
  static inline int alive = 0;
  int value;

  explicit touchy(int v) : value(v) { ++alive; }
  // NOLINTNEXTLINE(performance-noexcept-move-constructor): that it throws is the point
  touchy(touchy&& other) : value((check(), std::exchange(other.value, -1))) { ++alive; }
  touchy& operator=(touchy&&) = delete;
  ~touchy() { --alive; }
  static void check() {
    if (fuse >= 0) {
      --fuse;
      if (fuse < 0) {
        throw std::runtime_error("moved");
      }
    }
  }
};

class channel_throws : public testing::Test {
 protected:
  ~channel_throws() override {
    touchy::fuse = -1;
    EXPECT_EQ(touchy::alive, 0);
  }
};

TEST_F(channel_throws, into_and_out_of_the_ring) {
  channel<touchy> c(2);
  touchy value(3);
  touchy::fuse = 0;
  EXPECT_THROW(static_cast<void>(c.send(offer(value))), std::runtime_error);
  EXPECT_EQ(value.value, 3);
  EXPECT_EQ(c.size(), 0u);
  EXPECT_TRUE(c.send(offer(value)).has_value());
  touchy::fuse = 0;
  EXPECT_THROW(static_cast<void>(c.receive()), std::runtime_error);
  EXPECT_EQ(c.size(), 1u);
  touchy::fuse = 1;  // a second move would lose it
  EXPECT_EQ(c.receive()->value, 3);
  EXPECT_EQ(touchy::fuse, 0);
  touchy::fuse = -1;
  EXPECT_TRUE(c.send(touchy(4)).has_value());
  touchy::fuse = 1;
  EXPECT_EQ(c.try_receive()->value, 4);
  EXPECT_EQ(touchy::fuse, 0);
}

TEST_F(channel_throws, where_an_unbounded_one_grows) {
  channel<touchy> c(pirn::unbounded);
  int sent = 0;
  for (; sent < 100; ++sent) {
    touchy value(sent);
    touchy::fuse = 0;
    EXPECT_THROW(static_cast<void>(c.send(offer(value))), std::runtime_error);
    EXPECT_EQ(c.size(), static_cast<std::size_t>(sent));
    EXPECT_TRUE(c.send(offer(value)).has_value());
  }
  for (int i = 0; i < sent; ++i) {
    EXPECT_EQ(c.receive()->value, i);
  }
}

TEST_F(channel_throws, to_a_waiting_receiver) {
  rig r(1);
  r.rt.run([&] {
    channel<touchy> c(1);
    pirn::fiber f = pirn::spawn([&] { EXPECT_EQ(c.receive()->value, 4); });
    pirn::this_fiber::yield();
    touchy value(4);
    touchy::fuse = 0;
    EXPECT_THROW(static_cast<void>(c.send(offer(value))), std::runtime_error);
    pirn::this_fiber::yield();
    EXPECT_EQ(value.value, 4);
    EXPECT_TRUE(c.send(offer(value)).has_value());
    f.join();
  });
}

TEST_F(channel_throws, from_waiting_senders_the_throw_reaches_the_sender_and_the_next_one_goes_on) {
  rig r(1);
  r.rt.run([&] {
    channel<touchy> c(1);
    EXPECT_TRUE(c.send(touchy(1)).has_value());
    int thrown = 0;
    std::vector<pirn::fiber> senders;
    for (int i = 2; i <= 4; ++i) {
      senders.push_back(pirn::spawn([&, i] {
        touchy value(i);
        try {
          EXPECT_TRUE(c.send(offer(value)).has_value());
        } catch (const std::runtime_error&) {
          EXPECT_EQ(value.value, i);
          ++thrown;
          EXPECT_TRUE(c.send(offer(value)).has_value());
        }
      }));
    }
    pirn::this_fiber::yield();
    touchy::fuse = 1;  // the move out succeeds, that of the first waiting sender throws
    int sum = 0;
    for (int i = 0; i < 4; ++i) {
      sum += c.receive()->value;
    }
    EXPECT_EQ(sum, 1 + 2 + 3 + 4);
    join_all(senders);
    EXPECT_EQ(thrown, 0);  // it tried again, and then the move worked
  });
}

TEST_F(channel_throws, where_sender_and_receiver_meet_the_receiver_sees_it) {
  rig r(1);
  r.rt.run([&] {
    channel<touchy> c;
    pirn::fiber f = pirn::spawn([&] {
      touchy value(6);
      EXPECT_TRUE(c.send(offer(value)).has_value());
    });
    pirn::this_fiber::yield();
    touchy::fuse = 0;
    EXPECT_THROW(static_cast<void>(c.receive()), std::runtime_error);
    EXPECT_EQ(c.receive()->value, 6);
    f.join();
  });
}

TEST_F(channel_throws, while_iterating) {
  channel<touchy> c(2);
  EXPECT_TRUE(c.send(touchy(1)).has_value());
  EXPECT_TRUE(c.send(touchy(2)).has_value());
  auto i = c.begin();
  EXPECT_EQ(i->value, 1);
  touchy::fuse = 0;
  EXPECT_THROW(++i, std::runtime_error);
  EXPECT_TRUE(i == c.end());
  EXPECT_EQ(c.receive()->value, 2);
}

TEST(channel, may_switch_over_to_the_receiver_that_waits) {
  rig r(2);
  r.rt.run([] {
    channel<int> c(1);
    std::vector<std::string> order;
    const auto note = [&](const char* what) { order.emplace_back(what); };
    pirn::fiber receiver = pirn::spawn([&] {
      while (c.receive()) {
        note("receiver");
      }
    });
    pirn::this_fiber::yield();
    pirn::fiber other = pirn::spawn([&] { note("other"); });
    EXPECT_TRUE(c.send(1, pirn::wake_policy::enqueue).has_value());
    note("sender");
    EXPECT_TRUE(pirn::this_fiber::sleep_for(1ms).has_value());
    EXPECT_EQ(order, (std::vector<std::string>{"sender", "receiver", "other"}));
    other.join();

    order.clear();
    other = pirn::spawn([&] { note("other"); });
    EXPECT_TRUE(c.send(2, pirn::wake_policy::switch_over).has_value());
    note("sender");
    EXPECT_EQ(order, (std::vector<std::string>{"receiver", "other", "sender"}));
    other.join();
    EXPECT_TRUE(c.send(3, pirn::wake_policy::switch_over, clock::now() + 10s).has_value());
    EXPECT_TRUE(c.send(4, pirn::wake_policy::switch_over).has_value());
    c.close();
    receiver.join();

    // No receiver to switch to: the first one waits on another worker, then there is no receiver.
    channel<int> far(2);
    pirn::fiber there = pirn::spawn([&] { EXPECT_EQ(far.receive(), 5); }, {.worker = 1});
    EXPECT_TRUE(far.send(5, pirn::wake_policy::switch_over).has_value());
    there.join();
    EXPECT_TRUE(far.send(6, pirn::wake_policy::switch_over).has_value());
    EXPECT_EQ(far.receive(), 6);
  });
}

TEST(channel, switches_over_to_a_migratable_receiver_of_the_same_worker) {
  for (const unsigned workers : {1u, 2u}) {
    rig r(workers);
    r.rt.run([] {
      channel<int> c(0);
      int last = 0;
      pirn::fiber receiver = pirn::spawn(
          [&] {
            EXPECT_TRUE(pirn::this_fiber::migrate_to(0));
            while (const auto value = c.receive()) {
              last = *value;
            }
          },
          {.worker = 0, .migratable = true});
      EXPECT_TRUE(pirn::this_fiber::sleep_for(1ms).has_value());
      for (int i = 1; i <= 40; ++i) {  // fewer than the default `lifo_turns`
        EXPECT_TRUE(c.send(int{i}, pirn::wake_policy::switch_over).has_value());
        EXPECT_EQ(last, i);
      }
      c.close();
      receiver.join();
    });
  }
}

/// Small enough for a register; can be neither assigned nor default-constructed.
struct small {
  explicit small(int v) : value(v), third(static_cast<char>(v % 100)) {}
  const int value;
  const char third;
};
static_assert(std::is_trivially_copyable_v<small> && sizeof(small) == 8);

/// Expects that a value of each kind arrives unchanged, however the receiver is resumed.
template <class T, class Make, class Read>
void expect_switched_over(unsigned lifo_turns, Make make, Read read) {
  rig r(1, {.lifo_turns = lifo_turns});
  r.rt.run([&] {
    channel<T> c(1);
    constexpr int count = 5000;  // more than the scheduler allows without a tick
    int received = 0;
    pirn::fiber receiver = pirn::spawn([&] {
      try {
        while (received < count) {
          if (received % 100 == 99) {
            throw 1;  // the handler receives by the slow path
          }
          EXPECT_EQ(read(*c.receive()), read(make(received)));
          ++received;
        }
      } catch (int) {
        while (received < count) {
          EXPECT_EQ(read(*c.receive()), read(make(received)));
          ++received;
        }
      }
      EXPECT_EQ(c.receive().error(), wait_error::closed);
    });
    pirn::fiber idler = pirn::spawn([&] {
      while (received < count) {  // NOLINT(bugprone-infinite-loop): another fiber counts
        EXPECT_EQ(std::current_exception(), nullptr);
        pirn::this_fiber::yield();
      }
    });
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(c.send(make(i), pirn::wake_policy::switch_over).has_value());
      if (i % 7 == 0) {
        pirn::this_fiber::yield();
      }
    }
    c.close();
    receiver.join();
    idler.join();
    EXPECT_EQ(received, count);
  });
}

TEST(channel, values_that_switch_over_in_a_register_arrive) {
  for (const unsigned bound : {0u, 1u, 3u, pirn::runtime_options{}.lifo_turns}) {
    expect_switched_over<int>(bound, [](int i) { return -i; }, [](int v) { return v; });
    expect_switched_over<double>(bound, [](int i) { return i / 3.0; }, [](double v) { return v; });
    expect_switched_over<bool>(bound, [](int i) { return i % 3 == 0; }, [](bool v) { return v; });
    expect_switched_over<small>(
        bound, [](int i) { return small(i); }, [](const small& v) { return v.value * 1000 + v.third; });
    expect_switched_over<std::string>(
        bound, [](int i) { return std::to_string(i); }, [](const std::string& v) { return v; });
  }
}

TEST(channel, switching_over_again_and_again_starves_nobody) {
  rig r(1, {.lifo_turns = 10});
  r.rt.run([] {
    constexpr std::size_t count = 200;
    std::vector<std::unique_ptr<channel<int>>> chain;
    for (std::size_t i = 0; i <= count; ++i) {
      chain.push_back(std::make_unique<channel<int>>(1));
    }
    int hops = 0;
    std::vector<pirn::fiber> fibers;
    for (std::size_t i = 0; i < count; ++i) {
      fibers.push_back(pirn::spawn([&chain, &hops, i] {
        const int value = chain[i]->receive().value();
        ++hops;
        EXPECT_TRUE(chain[i + 1]->send(value + 1, pirn::wake_policy::switch_over).has_value());
      }));
    }
    pirn::this_fiber::yield();  // now all wait
    pirn::fiber idler = pirn::spawn([&] { EXPECT_LE(hops, 20); });
    EXPECT_TRUE(chain[0]->send(0, pirn::wake_policy::switch_over).has_value());
    EXPECT_EQ(chain[count]->receive().value(), static_cast<int>(count));
    join_all(fibers);
    idler.join();
  });
}

TEST(channel, a_stop_at_the_moment_of_a_switch_over_loses_nothing) {
  rig r(1);
  channel<int> c(0);
  std::atomic<long> received = 0;
  long sent = 0;
  for (int i = 0; i < 300; ++i) {
    pirn::fiber receiver = r.rt.spawn([&] {
      while (const auto value = c.receive()) {
        received += *value;
      }
    });
    pirn::fiber sender = r.rt.spawn([&] {
      for (int k = 0; k < 50; ++k) {
        sent += c.send(1, pirn::wake_policy::switch_over, clock::now() + 100us) ? 1 : 0;
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(i % 20));
    receiver.request_stop();
    receiver.join();
    sender.join();
  }
  EXPECT_EQ(received, sent);
  EXPECT_GT(sent, 0);
}

}  // namespace
