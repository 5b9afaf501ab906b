// Scopes: ends, failures, stops and deadlines of their children, and `all`, `race`, `any` and `map`.
#include "pirn/fiber/scope.hpp"

#include <functional>
#include <memory>
#include <stdexcept>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::scope;
using pirn::wait_error;
namespace this_fiber = pirn::this_fiber;

using outcome = std::expected<void, wait_error>;

/// Runs `body` on a fiber, then on a plain thread, with a scope that is opened there.
template <class F>
void on_both(F body) {
  for (const unsigned workers : {1u, 2u}) {
    rig r(workers);
    r.rt.run([&] { body(r.rt); });
    body(r.rt);
  }
}

outcome sleep_long() { return this_fiber::sleep_for(1h); }

TEST(scope, children_end_before_it) {
  on_both([](pirn::runtime& rt) {
    std::atomic<int> ended = 0;
    {
      scope s(rt);
      for (int i = 0; i < 10; ++i) {
        s.spawn(
            [&] {
              EXPECT_TRUE(this_fiber::sleep_for(1ms));
              ++ended;
            },
            {.worker = i % 2 == 0 ? 0 : pirn::spawn_options::any_worker});
      }
      s.join();
      EXPECT_EQ(ended, 10);
      s.spawn([&] { ++ended; });  // again, after a join
      s.join();
      EXPECT_EQ(ended, 11);
    }
  });
}

TEST(scope, without_join_stops_and_waits) {
  on_both([](pirn::runtime& rt) {
    std::atomic<int> stopped = 0;
    {
      scope s(rt);
      for (int i = 0; i < 5; ++i) {
        s.spawn([&] {
          EXPECT_EQ(sleep_long().error(), wait_error::stopped);
          ++stopped;
        });
      }
    }
    EXPECT_EQ(stopped, 5);
  });
}

TEST(scope, what_a_child_captured_is_gone_before_the_scope) {
  on_both([](pirn::runtime& rt) {
    std::atomic<bool> gone = false;
    struct last {
      explicit last(std::atomic<bool>& flag) : gone(&flag) {}
      last(last&& other) noexcept : gone(std::exchange(other.gone, nullptr)) {}
      ~last() {
        if (gone != nullptr) {
          this_fiber::yield();
          *gone = true;
        }
      }
      std::atomic<bool>* gone;
    };
    scope s(rt);
    s.spawn([mine = last(gone)] {});
    s.join();
    EXPECT_TRUE(gone);
  });
}

TEST(scope, children_spawn_into_it) {
  on_both([](pirn::runtime& rt) {
    std::atomic<int> ran = 0;
    scope s(rt);
    struct tree {
      scope& s;
      std::atomic<int>& ran;
      void grow(int depth) {
        ++ran;
        for (int i = 0; depth > 0 && i < 2; ++i) {
          s.spawn([this, depth] { grow(depth - 1); });
        }
      }
    } t{s, ran};
    s.spawn([&] { t.grow(6); });
    s.join();
    EXPECT_EQ(ran, 127);
  });
}

TEST(scope, large_callables_and_names) {
  rig r(1);
  r.rt.run([] {
    scope s;
    std::array<int, 100> many{};
    many[99] = 5;
    int got = 0;
    s.spawn([many, &got] { got = many[99]; });
    std::string name;
    s.spawn([&] { name = this_fiber::name(); }, {.name = "child", .stack_size = 32768});
    s.join();
    EXPECT_EQ(got, 5);
    EXPECT_EQ(name, "child");
    EXPECT_THROW(s.spawn([] {}, {.worker = 7}), std::system_error);
    s.join();
  });
}

TEST(scope, first_failure_stops_the_rest_and_the_opener) {
  on_both([](pirn::runtime& rt) {
    outcome sibling;
    outcome opener;
    std::string what;
    try {
      scope s(rt);
      s.spawn([&] { sibling = sleep_long(); });
      s.spawn([] {
        static_cast<void>(this_fiber::sleep_for(1ms));
        throw std::runtime_error("first");
      });
      opener = sleep_long();
      EXPECT_TRUE(this_fiber::stop_requested());
      EXPECT_EQ(s.check_stop().error(), wait_error::stopped);
      s.join();
      ADD_FAILURE();
    } catch (const std::runtime_error& e) {
      what = e.what();
    }
    EXPECT_EQ(sibling.error(), wait_error::stopped);
    EXPECT_EQ(opener.error(), wait_error::stopped);
    EXPECT_EQ(what, "first");
    // The stop has ended with the scope.
    EXPECT_FALSE(this_fiber::stop_requested());
    EXPECT_TRUE(this_fiber::sleep_for(1us));
  });
}

TEST(scope, other_failures_come_attached) {
  on_both([](pirn::runtime& rt) {
    bool caught = false;
    try {
      scope outer(rt);
      outer.spawn([&rt] {
        scope s(rt);
        for (int i = 1; i <= 3; ++i) {
          s.spawn([i] {
            if (i > 1) {
              static_cast<void>(sleep_long());
            }
            throw i;
          });
        }
        s.join();
      });
      outer.join();
    } catch (const int first) {
      caught = true;
      EXPECT_EQ(first, 1);
      int sum = 0;
      for (const std::exception_ptr& other : pirn::attached_exceptions()) {
        try {
          std::rethrow_exception(other);
        } catch (const int value) {
          sum += value;
          EXPECT_TRUE(pirn::attached_exceptions().empty());
        }
      }
      EXPECT_EQ(sum, 5);
    }
    EXPECT_TRUE(caught);
    EXPECT_TRUE(pirn::attached_exceptions().empty());
  });
}

std::atomic<int> handled = 0;

TEST(scope, a_failure_that_nobody_joins_for_goes_to_the_handler) {
  const auto before = pirn::set_unhandled_exception_handler(
      // NOLINTNEXTLINE(performance-unnecessary-value-param)
      [](std::uint64_t, std::string_view, std::exception_ptr) noexcept { ++handled; });
  handled = 0;
  on_both([](pirn::runtime& rt) {
    try {
      scope s(rt);
      s.spawn([] { throw 1; });
      throw 2.5;
    } catch (const double) {
    }
  });
  EXPECT_EQ(handled, 4);
  pirn::set_unhandled_exception_handler(before);
}

TEST(scope, all_returns_by_value) {
  on_both([](pirn::runtime& rt) {
    scope s(rt);
    int seven = 7;
    bool ran = false;
    auto [number, owner, nothing, reference] = s.all([] { return 42; }, [] { return std::make_unique<int>(5); },
                                                     [&] { ran = true; }, [&]() -> int& { return seven; });
    static_assert(std::is_same_v<decltype(nothing), std::monostate>);
    EXPECT_EQ(number, 42);
    EXPECT_EQ(*owner, 5);
    EXPECT_TRUE(ran);
    EXPECT_EQ(&reference, &seven);
    const auto movable = [p = std::make_unique<int>(9)] { return *p; };
    EXPECT_EQ(std::get<0>(s.all(movable)), 9);
  });
}

TEST(scope, all_stops_at_the_first_failure) {
  on_both([](pirn::runtime& rt) {
    scope s(rt);
    outcome other;
    EXPECT_THROW(s.all([]() -> int { throw std::logic_error("no"); }, [&] { return other = sleep_long(), 1; }),
                 std::logic_error);
    EXPECT_EQ(other.error(), wait_error::stopped);
    // The stop concerned that call only: the scope continues.
    EXPECT_TRUE(s.check_stop());
    EXPECT_EQ(std::get<0>(s.all([] { return 3; })), 3);
  });
}

TEST(scope, race_goes_to_whoever_ends_first) {
  on_both([](pirn::runtime& rt) {
    scope s(rt);
    bool loser_ended = false;
    const int won = s.race([] { return 1; },
                           [&] {
                             const outcome slept = sleep_long();
                             EXPECT_EQ(slept.error(), wait_error::stopped);
                             loser_ended = true;
                             return 2;
                           });
    EXPECT_EQ(won, 1);
    EXPECT_TRUE(loser_ended);
    const std::variant<int, std::string> mixed =
        s.race([] { return static_cast<void>(sleep_long()), 1; }, [] { return std::string("fast"); });
    EXPECT_EQ(std::get<1>(mixed), "fast");
    EXPECT_THROW(s.race([]() -> int { throw 1; }, [] { return static_cast<void>(sleep_long()), 2; }), int);
    // Exceptions of the losers are dropped.
    EXPECT_EQ(s.race([] { return 4; },
                     []() -> int {
                       static_cast<void>(sleep_long());
                       throw 1;
                     }),
              4);
    auto owner = s.race([] { return std::make_unique<int>(6); });
    EXPECT_EQ(*owner, 6);
  });
}

TEST(scope, any_takes_the_first_success) {
  on_both([](pirn::runtime& rt) {
    scope s(rt);
    EXPECT_EQ(s.any([]() -> int { throw 1; },
                    [] {
                      EXPECT_TRUE(this_fiber::sleep_for(1ms));
                      return 2;
                    },
                    [] { return static_cast<void>(sleep_long()), 3; }),
              2);
    try {
      s.any([]() -> int { throw 1; }, []() -> int { throw 2; }, []() -> int { throw 3; });
      ADD_FAILURE();
    } catch (const int) {
      EXPECT_EQ(pirn::attached_exceptions().size(), 2u);
    }
  });
}

TEST(scope, map_keeps_order_and_limit) {
  on_both([](pirn::runtime& rt) {
    scope s(rt, {.worker = pirn::spawn_options::any_worker});
    std::vector<int> in(50);
    for (int i = 0; i < 50; ++i) {
      in[static_cast<std::size_t>(i)] = i;
    }
    for (const std::size_t limit : {1u, 3u, 100u}) {
      std::atomic<int> now = 0;
      std::atomic<int> most = 0;
      const auto out = s.map(in, limit, [&](int& i) {
        const int running = ++now;
        raise_to(most, running);
        EXPECT_TRUE(this_fiber::sleep_for(std::chrono::microseconds(100 * (i % 4))));
        --now;
        return std::make_unique<int>(2 * i);
      });
      ASSERT_TRUE(out.has_value());
      ASSERT_EQ(out->size(), 50u);
      for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(*(*out)[static_cast<std::size_t>(i)], 2 * i);
      }
      EXPECT_LE(most, static_cast<int>(limit));
      EXPECT_GE(most, limit == 1 ? 1 : 2);
    }
    std::atomic<int> sum = 0;
    EXPECT_TRUE(s.map(std::views::iota(0, 5), 2, [&](int i) { sum += i; }));
    EXPECT_EQ(sum, 10);
    EXPECT_TRUE(s.map(std::vector<int>(), 0, [](int) {}));
    EXPECT_EQ(s.map(std::views::iota(1, 4), 2, std::identity()), (std::vector<int>{1, 2, 3})) << "copies of references";
  });
}

TEST(scope, map_stops_at_the_first_failure_and_at_a_stop) {
  on_both([](pirn::runtime& rt) {
    scope s(rt);
    std::atomic<int> begun = 0;
    const auto fails_at_three = [&](int i) {
      ++begun;
      if (i == 3) {
        throw std::runtime_error("three");
      }
      static_cast<void>(this_fiber::sleep_for(1us));
    };
    EXPECT_THROW(static_cast<void>(s.map(std::views::iota(0, 1000), 2, fails_at_three)), std::runtime_error);
    EXPECT_LT(begun, 10);
    begun = 0;
    const auto ended = s.map(std::views::iota(0, 1000), 2, [&](int i) {
      ++begun;
      if (i == 1) {
        s.request_stop();
      }
      return sleep_long().error();
    });
    EXPECT_EQ(ended.error(), wait_error::stopped);
    EXPECT_LT(begun, 10);
  });
}

TEST(scope, stop_reaches_through_three_levels) {
  for (const int how : {0, 1, 2}) {
    rig r(2);
    pirn::stop_source source;
    std::atomic<int> asleep = 0;
    std::atomic<int> stopped = 0;
    const auto leaf = [&] {
      ++asleep;
      EXPECT_EQ(sleep_long().error(), wait_error::stopped);
      EXPECT_TRUE(this_fiber::stop_requested());
      ++stopped;
    };
    pirn::fiber top = r.rt.spawn(
        [&] {
          scope a({.stop = how == 2 ? source.get_token() : pirn::stop_token()});
          for (int i = 0; i < 2; ++i) {
            a.spawn([&] {
              scope b;
              b.spawn(
                  [&] {
                    scope c;
                    c.spawn(leaf);
                    c.all(leaf, leaf);
                    c.join();
                  },
                  {.worker = 1});
              b.join();
            });
          }
          a.join();
        },
        {.worker = 0, .stop = how == 1 ? source.get_token() : pirn::stop_token()});
    ASSERT_TRUE(eventually([&] { return asleep == 6; }));
    if (how == 0) {
      top.request_stop();
    } else {
      source.request_stop();
    }
    top.join();
    EXPECT_EQ(stopped, 6);
  }
}

// Children that are nested deeper than a stack has room for calls, and scopes that one fiber opens inside each other.
TEST(scope, a_stop_reaches_as_deep_as_they_nest) {
  constexpr int depth = 1500;
  rig r(1);
  std::atomic<bool> asleep = false;
  const std::function<void(int)> child = [&](int left) {
    scope here;
    if (left == 0) {
      asleep = true;
      EXPECT_EQ(sleep_long().error(), wait_error::stopped);
      return;
    }
    here.spawn([&, left] { child(left - 1); });
    here.join();
  };
  const std::function<void(int)> call = [&](int left) {
    const scope here;
    left == 0 ? child(0) : call(left - 1);
  };
  for (const auto& nest : {child, call}) {
    asleep = false;
    pirn::fiber top = r.rt.spawn([&] { nest(depth); }, {.stack_size = 16 << 20});
    ASSERT_TRUE(eventually([&] { return asleep.load(); }));
    r.rt.run([&] { top.request_stop(); });
    top.join();
  }
}

TEST(scope, opened_after_the_stop_is_stopped) {
  rig r(1);
  pirn::fiber f = r.rt.spawn([] {
    EXPECT_EQ(sleep_long().error(), wait_error::stopped);
    scope s;
    EXPECT_EQ(s.check_stop().error(), wait_error::stopped);
    s.spawn([] { EXPECT_EQ(sleep_long().error(), wait_error::stopped); });
    s.join();
  });
  f.request_stop();
  f.join();
}

TEST(scope, deadlines_nest_and_the_nearer_wins) {
  on_both([](pirn::runtime& rt) {
    EXPECT_EQ(this_fiber::deadline(), pirn::platform::never);
    const auto start = clock::now();
    scope outer(rt, {.deadline = start + 10min});
    {
      scope inner(rt, {.deadline = start + 100ms});
      EXPECT_EQ(this_fiber::deadline(), start + 100ms);
      {
        scope later(rt, {.deadline = start + 1h});
        EXPECT_EQ(later.deadline(), start + 100ms);
        outcome child;
        later.spawn([&] {
          EXPECT_EQ(this_fiber::deadline(), start + 100ms);
          child = sleep_long();
        });
        // The deadline of a wait itself still passes as such.
        EXPECT_TRUE(this_fiber::sleep_until(start + 100us));
        EXPECT_EQ(sleep_long().error(), wait_error::expired);
        later.join();
        EXPECT_EQ(child.error(), wait_error::expired);
        EXPECT_EQ(later.check_stop().error(), wait_error::expired);
        EXPECT_EQ(this_fiber::check_stop().error(), wait_error::expired);
      }
      EXPECT_EQ(sleep_long().error(), wait_error::expired);
    }
    EXPECT_TRUE(outer.check_stop());
    EXPECT_TRUE(this_fiber::check_stop());
    EXPECT_TRUE(this_fiber::sleep_for(1ms));
    EXPECT_GE(clock::now(), start + 100ms);
  });
}

TEST(scope, a_loop_that_computes_sees_the_deadline) {
  on_both([](pirn::runtime& rt) {
    {
      scope s(rt, {.deadline = clock::now() + 1ms});
      // It does not suspend, so its worker fires no timers.
      const auto compute = [] {
        const auto give_up = clock::now() + 10s;
        while (this_fiber::check_stop() && clock::now() < give_up) {
        }
        EXPECT_EQ(this_fiber::check_stop(), std::unexpected(wait_error::expired));
        EXPECT_TRUE(this_fiber::stop_requested());
      };
      s.spawn(compute);
      compute();
      EXPECT_EQ(s.check_stop(), std::unexpected(wait_error::expired));
      s.join();
    }
    EXPECT_TRUE(this_fiber::check_stop());
    const scope late(rt, {.deadline = clock::now() - 1h});
    EXPECT_EQ(late.check_stop(), std::unexpected(wait_error::expired));
    EXPECT_EQ(this_fiber::check_stop(), std::unexpected(wait_error::expired));
  });
}

TEST(scope, an_inner_stop_does_not_end_the_outer_scope) {
  on_both([](pirn::runtime& rt) {
    scope outer(rt);
    outcome sibling;
    outer.spawn([&] { sibling = this_fiber::sleep_for(2ms); });
    {
      scope inner(rt);
      inner.request_stop();
      EXPECT_EQ(sleep_long().error(), wait_error::stopped);
    }
    EXPECT_TRUE(this_fiber::sleep_for(1us));
    outer.join();
    EXPECT_TRUE(sibling.has_value());
    {
      scope inner(rt);
      outer.request_stop();
      EXPECT_EQ(inner.check_stop().error(), wait_error::stopped);
    }
    // The outer one is still stopped.
    EXPECT_EQ(sleep_long().error(), wait_error::stopped);
  });
}

TEST(scope, stops_and_ends_meet) {
  // Children end, scopes close and stops come from everywhere at the same time.
  rig r(2);
  pirn::platform::random random(11);
  for (int round = 0; round < scaled(300); ++round) {
    pirn::stop_source source;
    pirn::fiber f = r.rt.spawn(
        [&, seed = random.next()] {
          pirn::platform::random mine(seed);
          try {
            scope s({.deadline = clock::now() + std::chrono::microseconds(mine.next() % 300)});
            for (int i = 0; i < 8; ++i) {
              s.spawn(
                  [&s, pick = mine.next()] {
                    scope own;
                    own.spawn(
                        [pick] { static_cast<void>(this_fiber::sleep_for(std::chrono::microseconds(pick % 97))); });
                    static_cast<void>(this_fiber::sleep_for(std::chrono::microseconds(pick % 61)));
                    if (pick % 7 == 0) {
                      s.request_stop();
                    } else if (pick % 7 == 1) {
                      throw 1;
                    }
                    own.join();
                  },
                  {.worker = i % 2});
            }
            static_cast<void>(sleep_long());
            s.join();
          } catch (const int) {
          }
          EXPECT_EQ(this_fiber::deadline(), pirn::platform::never);
        },
        {.stop = source.get_token()});
    if (round % 3 == 0) {
      source.request_stop();
    }
    if (round % 5 == 0) {
      f.request_stop();
    }
    f.join();
  }
  // A child's worker counts its end after the scope has learned of it.
  EXPECT_TRUE(eventually([&] { return r.rt.statistics().live_fibers == 0; }));
}

TEST(scope_death_test, cannot_be_closed_elsewhere_or_out_of_order) {
  // These are the only ways in which a child could outlive its scope.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        rig r(1);
        r.rt.run([&] {
          auto first = std::make_unique<scope>();
          scope second;
          first.reset();
        });
      },
      "closed before a scope that was opened later");
  EXPECT_DEATH(
      {
        rig r(1);
        r.rt.run([&] {
          scope s;
          s.spawn([&] { s.join(); });
          s.join();
        });
      },
      "by a fiber or thread other than its opener");
}

TEST(scope, on_a_plain_thread_needs_a_runtime) { EXPECT_THROW(scope(), std::system_error); }

}  // namespace
