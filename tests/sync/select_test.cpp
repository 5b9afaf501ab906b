// `select` over channels, events, deadlines and stop tokens.
#include "pirn/sync/select.hpp"

#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "sync/selections.hpp"

#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)  // sanitizers have their own operators
#define COUNTS_ALLOCATIONS
namespace {
std::atomic<long> allocations = 0;
}  // namespace

// NOLINTBEGIN(misc-new-delete-overloads): the others call these
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND(misc-new-delete-overloads)
#endif

namespace {

using namespace pirn_test;
using pirn::channel;
using pirn::select;
using pirn::selection;
using pirn::try_select;
using pirn::until;
using pirn::wait_error;

/// Returns an rvalue of a value that may be used again if it is not taken.
template <class T>
T&& offer(T& value) {
  return static_cast<T&&>(value);
}

TEST(select, does_what_is_ready) {
  channel<int> full(1);
  channel<std::string> empty(1);
  pirn::event set;
  pirn::event unset;
  ASSERT_TRUE(full.send(7).has_value());
  set.set();
  int number = 0;
  std::string text = "before";
  EXPECT_TRUE(succeeded(select(receive(empty, text), receive(full, number), wait(unset)), 1));
  EXPECT_EQ(number, 7);
  EXPECT_EQ(text, "before");
  const std::string kept = "kept";
  EXPECT_TRUE(succeeded(select(receive(full, number), send(empty, kept)), 1));
  EXPECT_EQ(kept, "kept");
  EXPECT_TRUE(succeeded(select(send(empty, "no room"), wait(unset), wait(set)), 2));
  EXPECT_TRUE(succeeded(select(receive(empty, text)), 0));
  EXPECT_EQ(text, "kept");
  EXPECT_TRUE(succeeded(select(until(clock::now() + 1ms)), 0));
}

TEST(select, an_event_with_automatic_reset_is_taken_back_by_the_case_that_fires) {
  pirn::event a(pirn::event_reset::automatic);
  pirn::event b(pirn::event_reset::automatic);
  a.set();
  b.set();
  const std::size_t first = select(wait(a), wait(b)).index;
  EXPECT_EQ(a.is_set(), first == 1);
  EXPECT_EQ(b.is_set(), first == 0);
  EXPECT_EQ(select(wait(a), wait(b)).index, 1 - first);
  EXPECT_TRUE(failed(try_select(wait(a), wait(b)), 2, wait_error::timed_out));
}

TEST(select, tries) {
  channel<int> c;
  int value = 5;
  EXPECT_TRUE(failed(try_select(receive(c, value), send(c, 1)), 2, wait_error::timed_out));
  EXPECT_EQ(value, 5);
  EXPECT_TRUE(failed(try_select(receive(c, value), until(clock::now() + 1h)), 2, wait_error::timed_out));
  EXPECT_TRUE(failed(try_select(receive(c, value), until(pirn::platform::never)), 2, wait_error::timed_out));
  EXPECT_TRUE(succeeded(try_select(receive(c, value), until(clock::now() + 1h), until(clock::now())), 2));
  pirn::event looked_at;
  EXPECT_TRUE(failed(try_select(wait(looked_at)), 1, wait_error::timed_out));
  looked_at.set();
  EXPECT_TRUE(succeeded(try_select(wait(looked_at)), 0));
}

TEST(select, the_nearest_timer_fires) {
  channel<int> c;
  int value = 0;
  const auto begun = clock::now();
  EXPECT_TRUE(
      succeeded(select(until(begun + 1h), receive(c, value), until(begun + 2ms), until(pirn::platform::never)), 2));
  EXPECT_GE(clock::now() - begun, 2ms);
}

TEST(select, what_is_ready_goes_before_a_deadline_and_a_stop) {
  rig r(1);
  channel<int> c(1);
  pirn::fiber f = r.rt.spawn([&] {
    while (!pirn::this_fiber::stop_requested()) {
      pirn::this_fiber::yield();
    }
    EXPECT_TRUE(succeeded(select(until({}), send(c, 1)), 1));
    EXPECT_TRUE(failed(select(send(c, 2), until({})), 2, wait_error::stopped));
  });
  f.request_stop();
  f.join();
  EXPECT_EQ(c.size(), 1u);
}

TEST(select, no_ready_case_starves) {
  // Also if the same cases are ready each time, and in a wait that others end.
  channel<int> a(1);
  channel<int> never_ready;
  pirn::event b;
  b.set();
  std::array<int, 4> fired = {};
  int value = 0;
  for (int i = 0; i < 4000; ++i) {
    static_cast<void>(a.try_send(1));
    ++fired[select(receive(a, value), receive(never_ready, value), wait(b), wait(b)).index];
  }
  EXPECT_EQ(fired[1], 0);
  for (const std::size_t ready : {0u, 2u, 3u}) {
    EXPECT_GT(fired[ready], 800) << ready;
  }
}

class select_workers : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(of_one_and_several, select_workers, testing::Values(1u, 3u));

TEST_P(select_workers, a_wait_is_ended_by_one_case_and_leaves_no_waiter) {
  rig r(GetParam());
  for (std::size_t which = 0; which < 5; ++which) {
    channel<int> a;
    channel<int> b(1);
    channel<int> full(1);
    pirn::event e;
    pirn::stop_source source;
    ASSERT_TRUE(full.send(8).has_value());
    int value = 0;
    std::atomic<bool> waits = false;
    pirn::fiber f = r.rt.spawn([&] {
      waits = true;
      EXPECT_TRUE(succeeded(select(receive(a, value), receive(b, value), send(full, 9), wait(e),
                                   wait(source.get_token()), until(clock::now() + 1h)),
                            which));
    });
    ASSERT_TRUE(eventually([&] { return waits.load(); }));
    std::this_thread::sleep_for(500us);
    switch (which) {
      case 0:
        EXPECT_TRUE(a.send(10).has_value());
        break;
      case 1:
        EXPECT_TRUE(b.send(11).has_value());
        break;
      case 2:
        EXPECT_EQ(full.receive().value(), 8);
        break;
      case 3:
        e.set();
        break;
      default:
        source.request_stop();
    }
    f.join();
    EXPECT_EQ(value, which == 0 ? 10 : which == 1 ? 11 : 0);
    EXPECT_EQ(full.try_receive().value(), which == 2 ? 9 : 8);
    EXPECT_EQ(a.try_send(1).error(), wait_error::timed_out);  // no waiter is left to take it
    EXPECT_TRUE(b.try_send(2).has_value());
    EXPECT_EQ(b.size(), 1u);
  }
}

TEST_P(select_workers, two_that_send_and_receive_on_the_same_channel_serve_each_other) {
  rig r(GetParam());
  channel<int> c;
  const int rounds = scaled(3000);
  std::atomic<long> sent = 0;
  std::atomic<long> received = 0;
  std::atomic<int> working = 4;
  std::vector<pirn::fiber> all;
  for (int who = 1; who <= 4; ++who) {
    all.push_back(r.rt.spawn([&, who] {
      for (int i = 0; i < rounds; ++i) {
        int got = 0;
        // The deadline ends the select only if no other fiber works any more.
        const selection s = who % 2 == 0 ? select(send(c, offer(who)), receive(c, got), until(clock::now() + 1s))
                                         : select(receive(c, got), send(c, offer(who)), until(clock::now() + 1s));
        if (s.index == 2) {
          EXPECT_EQ(working, 1);
          break;
        }
        EXPECT_NE(got, who) << "it has sent something to itself";
        (got == 0 ? sent : received) += got == 0 ? who : got;
      }
      --working;
    }));
  }
  join_all(all);
  EXPECT_EQ(sent, received);
  EXPECT_GE(sent, rounds);
}

TEST_P(select_workers, in_opposite_orders_over_the_same_channels_they_all_go_on) {
  rig r(GetParam());
  channel<int> a;
  channel<int> b(1);
  pirn::event done;
  const int rounds = scaled(20'000);
  std::atomic<long> sum = 0;
  std::vector<pirn::fiber> receivers;
  for (int i = 0; i < 4; ++i) {
    receivers.push_back(r.rt.spawn(
        [&, i] {
          for (int got = 0;; sum += got) {
            const selection s = i % 2 == 0 ? select(receive(a, got), receive(b, got), wait(done))
                                           : select(wait(done), receive(b, got), receive(a, got));
            if (s.index == (i % 2 == 0 ? 2u : 0u)) {
              return;
            }
          }
        },
        {.worker = i % static_cast<int>(GetParam())}));
  }
  const auto send_all = [&](bool turned) {
    for (int i = 0; i < rounds; ++i) {
      EXPECT_TRUE((turned ? select(send(b, 1), send(a, 1)) : select(send(a, 1), send(b, 1))).outcome.has_value());
    }
  };
  pirn::fiber sender = r.rt.spawn([&] { send_all(true); });
  send_all(false);  // a plain thread
  sender.join();
  ASSERT_TRUE(eventually([&] { return b.size() == 0; }));  // otherwise the event would be as ready as the values
  done.set();
  join_all(receivers);
  EXPECT_EQ(sum, 2L * rounds);
}

TEST(select, in_opposite_orders_two_that_only_look_do_not_lock_each_other_out) {
  channel<int> a;
  channel<int> b;
  constexpr int rounds = scaled(1'000'000);
  const auto look = [](channel<int>& first, channel<int>& second) {
    int value = 0;
    for (int i = 0; i < rounds; ++i) {
      EXPECT_EQ(try_select(receive(first, value), receive(second, value)).index, 2u);
    }
  };
  std::jthread other([&] { look(b, a); });
  look(a, b);
}

TEST_P(select_workers, closing_a_channel_fires_its_case) {
  rig r(GetParam());
  channel<int> a;
  channel<std::unique_ptr<int>> b;
  pirn::event e;
  std::atomic<int> waiting = 0;
  int value = 3;
  pirn::fiber receiver = r.rt.spawn([&] {
    ++waiting;
    EXPECT_TRUE(failed(select(wait(e), receive(a, value)), 1, wait_error::closed));
  });
  pirn::fiber sender = r.rt.spawn([&] {
    auto kept = std::make_unique<int>(4);
    ++waiting;
    EXPECT_TRUE(failed(select(send(b, offer(kept)), wait(e)), 0, wait_error::closed));
    EXPECT_EQ(*kept, 4);
    EXPECT_TRUE(failed(try_select(send(b, offer(kept))), 0, wait_error::closed));
    EXPECT_EQ(*kept, 4);
  });
  ASSERT_TRUE(eventually([&] { return waiting == 2; }));
  std::this_thread::sleep_for(1ms);
  a.close();
  b.close();
  receiver.join();
  sender.join();
  EXPECT_EQ(value, 3);
  EXPECT_TRUE(failed(select(receive(a, value), wait(e)), 0, wait_error::closed));
}

TEST(select, what_is_left_in_a_closed_channel_is_received_first) {
  channel<int> c(2);
  ASSERT_TRUE(c.send(1).has_value());
  c.close();
  int value = 0;
  EXPECT_TRUE(succeeded(select(receive(c, value)), 0));
  EXPECT_EQ(value, 1);
  EXPECT_TRUE(failed(select(receive(c, value)), 0, wait_error::closed));
}

TEST_P(select_workers, neither_a_stop_nor_a_timer_at_the_moment_of_the_hand_over_loses_or_doubles_a_value) {
  rig r(GetParam());
  const int rounds = scaled(3000);
  for (int i = 0; i < rounds; ++i) {
    channel<std::unique_ptr<int>> c(i % 2);
    channel<std::unique_ptr<int>> other;
    std::unique_ptr<int> got;
    pirn::fiber f = r.rt.spawn([&] {
      const selection s =
          select(receive(other, got), until(clock::now() + std::chrono::microseconds(i % 90)), receive(c, got));
      EXPECT_EQ(got != nullptr, succeeded(s, 2));
    });
    auto value = std::make_unique<int>(i);
    for (int spin = 0; spin < (i * 7) % 500; ++spin) {
      pirn::platform::relax();
    }
    std::optional<std::jthread> stopper;
    if (i % 3 == 0) {
      stopper.emplace([&] { f.request_stop(); });
    }
    const bool sent = try_select(send(c, offer(value))).index == 0;
    stopper.reset();
    f.join();
    EXPECT_EQ(value == nullptr, sent);
    EXPECT_EQ(c.size() + (got != nullptr ? 1 : 0), sent ? 1u : 0u);
    if (got != nullptr) {
      EXPECT_EQ(*got, i);
    }
  }
}

TEST(select, an_event_that_is_handed_over_is_not_lost_to_a_timer) {
  rig r(2);
  pirn::event e(pirn::event_reset::automatic);
  pirn::event never_set;
  const int rounds = scaled(3000);
  for (int i = 0; i < rounds; ++i) {
    bool passed = false;
    pirn::fiber f = r.rt.spawn([&] {
      passed = select(wait(never_set), until(clock::now() + std::chrono::microseconds(i % 70)), wait(e)).index == 2;
    });
    for (int spin = 0; spin < (i * 7) % 500; ++spin) {
      pirn::platform::relax();
    }
    e.set();
    f.join();
    EXPECT_NE(passed, e.try_wait());
  }
}

TEST(select, plain_threads_and_fibers_meet) {
  rig r(2);
  channel<int> there;
  channel<int> back;
  pirn::event e;
  const int rounds = scaled(3000);
  pirn::fiber f = r.rt.spawn([&] {
    for (int i = 0; i < rounds; ++i) {
      int got = -1;
      EXPECT_TRUE(succeeded(select(wait(e), receive(there, got)), 1));
      EXPECT_EQ(got, i);
      EXPECT_TRUE(succeeded(select(send(back, offer(got)), receive(there, got)), 0));
    }
  });
  for (int i = 0; i < rounds; ++i) {
    ASSERT_TRUE(there.send(i).has_value());
    int got = -1;
    EXPECT_TRUE(succeeded(select(receive(back, got), wait(e)), 0));
    EXPECT_EQ(got, i);
  }
  f.join();
}

TEST(select, a_token_that_was_stopped_is_ready) {
  pirn::stop_source source;
  EXPECT_TRUE(failed(try_select(wait(source.get_token()), wait(pirn::stop_token())), 2, wait_error::timed_out));
  source.request_stop();
  EXPECT_TRUE(succeeded(select(wait(pirn::stop_token()), wait(source.get_token())), 1));
}

#ifdef COUNTS_ALLOCATIONS
TEST(select, does_not_allocate) {
  rig r(1);
  r.rt.run([&] {
    channel<int> a;
    channel<int> b(1);
    pirn::event e;
    pirn::stop_source source;
    int value = 0;
    pirn::fiber f = pirn::spawn([&] {
      for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(a.send(i).has_value());
      }
    });
    const auto once = [&] {
      return select(receive(a, value), receive(b, value), wait(e), wait(source.get_token()), until(clock::now() + 1h));
    };
    EXPECT_TRUE(succeeded(once(), 0));
    const long before = allocations;
    EXPECT_TRUE(succeeded(once(), 0));
    EXPECT_TRUE(succeeded(once(), 0));
    EXPECT_EQ(allocations, before);
    f.join();
  });
}
#endif

/// Throws when moved while armed; cannot be assigned. Moving leaves the source as it was if it throws.
struct touchy {
  static inline bool armed = false;
  int value;
  explicit touchy(int v) : value(v) {}
  // NOLINTNEXTLINE(performance-noexcept-move-constructor): that it throws is the point
  touchy(touchy&& other) : value((check(), std::exchange(other.value, -1))) {}
  touchy& operator=(touchy&&) = delete;
  static void check() {
    if (std::exchange(armed, false)) {
      throw std::runtime_error("moved");
    }
  }
};

TEST(select, a_move_that_throws_does_nothing) {
  rig r(1);
  r.rt.run([&] {
    channel<touchy> ring(1);
    channel<touchy> meeting;
    touchy value(3);
    std::optional<touchy> got;
    touchy::armed = true;
    EXPECT_THROW(select(send(ring, offer(value))), std::runtime_error);
    EXPECT_EQ(value.value, 3);
    ASSERT_TRUE(ring.send(offer(value)).has_value());
    touchy::armed = true;
    EXPECT_THROW(select(receive(ring, got), receive(meeting, got)), std::runtime_error);
    EXPECT_EQ(ring.size(), 1u);
    ASSERT_TRUE(succeeded(select(receive(meeting, got), receive(ring, got)), 1));
    EXPECT_EQ(got->value, 3);

    // Into a select that waits: the sender sees the exception, and the select continues to wait.
    pirn::fiber f = pirn::spawn([&] { EXPECT_TRUE(succeeded(select(receive(ring, got), receive(meeting, got)), 1)); });
    pirn::this_fiber::yield();
    touchy four(4);
    touchy::armed = true;
    EXPECT_THROW(static_cast<void>(meeting.send(offer(four))), std::runtime_error);
    pirn::this_fiber::yield();
    EXPECT_EQ(four.value, 4);
    EXPECT_TRUE(meeting.send(offer(four)).has_value());
    f.join();
    EXPECT_EQ(got->value, 4);

    // Out of a select that waits: the receiver sees the exception.
    touchy five(5);
    pirn::fiber g = pirn::spawn([&] { EXPECT_TRUE(succeeded(select(send(meeting, offer(five))), 0)); });
    pirn::this_fiber::yield();
    touchy::armed = true;
    EXPECT_THROW(static_cast<void>(meeting.receive()), std::runtime_error);
    EXPECT_EQ(five.value, 5);
    EXPECT_EQ(meeting.receive()->value, 5);
    g.join();
  });
}

/// Throws when a number is assigned to it while armed.
struct reluctant {
  reluctant(int from) : value(from) {}  // NOLINT(google-explicit-constructor): assignable_from asks for it
  bool armed = true;
  int value;
  reluctant& operator=(int from) {
    if (armed) {
      throw std::runtime_error("not now");
    }
    value = from;
    return *this;
  }
};

TEST(select, a_place_that_throws_throws_in_the_sender_and_is_waited_for_again) {
  for (const pirn::wake_policy policy : {pirn::wake_policy::enqueue, pirn::wake_policy::switch_over}) {
    on_one_worker([policy] {
      channel<int> c;
      reluctant place = 0;
      pirn::fiber f = pirn::spawn([&] { EXPECT_TRUE(succeeded(select(receive(c, place)), 0)); });
      pirn::this_fiber::yield();
      EXPECT_THROW(static_cast<void>(c.send(1, policy)), std::runtime_error);
      pirn::this_fiber::yield();
      place.armed = false;
      EXPECT_TRUE(c.send(2, policy).has_value());
      f.join();
      EXPECT_EQ(place.value, 2);
    });
  }
}

}  // namespace
