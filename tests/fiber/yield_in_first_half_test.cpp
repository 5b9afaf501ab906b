// A generator that yields in the first half of a fork2, so that its consumer runs in the middle of the call.
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "fiber/runtime_state.hpp"
#include "fiber/yield_support.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/fiber/context_value.hpp"
#include "pirn/fiber/scope.hpp"

namespace {

using namespace pirn_test;
using pirn::frame;
using pirn::generator;

/// Yields twice in a first half. Counts how often each half is called.
struct yields_in_first_half {
  int& firsts;
  int& seconds;
  void operator()(auto& yield) const {
    pirn::fork2(
        [&] {
          ++firsts;
          yield(1);
          yield(2);
        },
        [&] { ++seconds; });
  }
};

/// Lets `consumer` resume a generator that yields in a first half, until its end.
template <class Consumer>
void consume_in_first_half(Consumer consumer) {
  for (const unsigned workers : {1u, 2u}) {
    on_migratable(workers, [&] {
      for (int i = 0; i < scaled(50); ++i) {
        int firsts = 0;
        int seconds = 0;
        generator<int> g = yields_in_first_half{firsts, seconds};
        auto at = g.begin();
        consumer([&] { ++at; });
        EXPECT_EQ(at, std::default_sentinel);
        EXPECT_EQ(firsts, 1);
        EXPECT_EQ(seconds, 1);
      }
    });
  }
}

TEST(yield_in_first_half, a_generator_yields_in_a_first_half) {
  consume_in_first_half([](auto next) {
    next();
    next();
  });
}

TEST(yield_in_first_half, its_consumer_may_fork_meanwhile) {
  consume_in_first_half([](auto next) {
    int second = 0;
    pirn::fork2([] {}, [&] { ++second; });
    next();
    pirn::fork2([&] { next(); }, [&] { ++second; });
    EXPECT_EQ(second, 2);
  });
  consume_in_first_half([](auto next) {
    int outer = 0;
    int inner = 0;
    pirn::fork2(
        [&] {
          next();
          pirn::fork2([&] { next(); }, [&] { ++inner; });
        },
        [&] { ++outer; });
    EXPECT_EQ(outer, 1);
    EXPECT_EQ(inner, 1);
  });
}

TEST(yield_in_first_half, its_consumer_may_wait_meanwhile) {
  consume_in_first_half([](auto next) {
    pirn::this_fiber::yield();
    static_cast<void>(pirn::this_fiber::sleep_for(10us));
    int second = 0;
    pirn::fork2([&] { next(); }, [&] { ++second; });
    pirn::fork2([&] { next(); }, [&] { ++second; });
    EXPECT_EQ(second, 2);
  });
}

bool in_body() { return pirn::detail::position_in_body(pirn::detail::current_agent()) != 0; }

// The suspended first half whose continuation is stolen is not the innermost: its consumer forks on a stack further
// out. Each side knows its own stack, so that its scopes are not taken for a body's.
TEST(yield_in_first_half, its_consumer_and_the_halves_know_their_stacks) {
  for (const unsigned workers : {1u, 2u}) {
    on_migratable(workers, [] {
      for (int i = 0; i < scaled(50); ++i) {
        fork_apart(
            [] {
              generator<int> g = [](auto& yield) {
                fork_apart(
                    [&] {
                      EXPECT_TRUE(in_body()) << "a first half is where it was called";
                      yield(1);
                      EXPECT_TRUE(in_body());
                      yield(2);
                    },
                    [] { EXPECT_TRUE(in_body()); });
                EXPECT_TRUE(in_body());
              };
              auto at = g.begin();
              EXPECT_FALSE(in_body()) << "of the consumer, in a first half";
              fork_apart([&] { ++at; }, [] { EXPECT_FALSE(in_body()) << "of a consumer's second half"; });
              fork_apart(
                  [&] {
                    ++at;
                    EXPECT_FALSE(in_body());
                  },
                  [] {
                    pirn::this_fiber::yield();
                    EXPECT_FALSE(in_body()) << "the half that was left has ended";
                  });
              EXPECT_FALSE(in_body());
              EXPECT_EQ(at, std::default_sentinel);
            },
            [] { EXPECT_FALSE(in_body()); });
      }
    });
  }
}

pirn::context_value<int> number;
int bound() { return number.get() != nullptr ? *number.get() : 0; }

/// Yields in a first half and in another one inside it, with values bound and a scope open.
template <class Fork>
void yields_with_blocks_open(auto& yield, Fork fork, int& ran) {
  const pirn::context_value<int>::binding outside(number, 1);
  fork(
      [&] {
        const pirn::context_value<int>::binding half(number, 2);
        pirn::scope its;
        its.spawn([&] { ran += bound(); });
        yield(1);
        EXPECT_EQ(bound(), 2);
        its.join();
        fork(
            [&] {
              const pirn::context_value<int>::binding inner(number, 3);
              yield(2);
              EXPECT_EQ(bound(), 3);
            },
            [] { EXPECT_EQ(bound(), 2); });
        EXPECT_EQ(bound(), 2);
        yield(3);
        EXPECT_EQ(bound(), 2);
      },
      [] { EXPECT_EQ(bound(), 1); });
  EXPECT_EQ(bound(), 1);
}

TEST(yield_in_first_half, blocks_of_a_first_half_leave_with_the_body) {
  const auto consume = [](auto fork) {
    for (int i = 0; i < scaled(20); ++i) {
      int ran = 0;
      generator<int> g = [&](auto& yield) { yields_with_blocks_open(yield, fork, ran); };
      EXPECT_EQ(bound(), 0);
      auto at = g.begin();
      EXPECT_EQ(bound(), 0);
      const pirn::context_value<int>::binding mine(number, 9);
      for (int k = 2; k <= 3; ++k) {
        fork([&] { ++at; }, [] { EXPECT_EQ(bound(), 9); });
        EXPECT_EQ(bound(), 9);
        EXPECT_EQ(*at, k);
      }
      ++at;
      EXPECT_EQ(bound(), 9);
      EXPECT_EQ(ran, 2);
    }
  };
  for (const unsigned workers : {1u, 2u}) {
    on_migratable(workers, [&] {
      consume([](auto first, auto second) { pirn::fork2(first, second); });
      consume([](auto first, auto second) { fork_apart(first, second); });
    });
  }
}

TEST(yield_in_first_half, a_taken_half_keeps_the_values_around_it) {
  for (const unsigned workers : {1u, 2u}) {
    on_migratable(workers, [] {
      for (int i = 0; i < scaled(20); ++i) {
        std::atomic<bool> begun = false;
        std::atomic<bool> unbound = false;
        int seen = 0;
        std::optional<generator<int>> g;
        std::optional<generator<int>::iterator> at;
        {
          const pirn::context_value<int>::binding mine(number, 5);
          g.emplace([&](auto& yield) {
            pirn::fork2(
                [&] {
                  EXPECT_TRUE(eventually([&] { return begun.load(); }));
                  yield(1);
                },
                [&] {
                  begun = true;
                  EXPECT_TRUE(eventually([&] { return unbound.load(); }));
                  seen = bound();
                });
          });
          at.emplace(g->begin());
        }
        EXPECT_EQ(bound(), 0);
        unbound = true;
        ++*at;
        EXPECT_EQ(seen, 5);
      }
    });
  }
}

// Closing a block that a second half inherits, while a generator has left that call of fork2 open.

TEST(yield_in_first_half, a_half_keeps_a_value_that_is_unbound_before_it_begins) {
  on_migratable(1, [] {
    int seen = 0;
    generator<int> g = [&](auto& yield) { pirn::fork2([&] { yield(1); }, [&] { seen = bound(); }); };
    std::optional<generator<int>::iterator> at;
    {
      const pirn::context_value<int>::binding mine(number, 5);
      at.emplace(g.begin());
    }
    pirn::this_fiber::yield();
    ++*at;
    EXPECT_EQ(seen, 5);
  });
}

TEST(yield_in_first_half, a_half_keeps_all_values_while_some_of_them_are_away_with_the_body) {
  for (const bool taken : {false, true}) {
    for (const unsigned workers : {1u, 2u}) {
      on_migratable(workers, [&] {
        const pirn::context_value<int> other;
        std::vector<int> seen;
        std::atomic<bool> begun = false;
        std::atomic<bool> away = false;
        generator<int> g = [&](auto& yield) {
          const pirn::context_value<int>::binding own(number, 1);
          pirn::fork2(
              [&] {
                EXPECT_TRUE(!taken || eventually([&] { return begun.load(); }));
                yield(1);
              },
              [&] {
                begun = true;
                EXPECT_TRUE(eventually([&] { return away.load(); }));
                seen = {bound(), *other.get()};
              });
        };
        const pirn::context_value<int>::binding of_consumer(other, 7);
        auto at = g.begin();
        away = true;
        {
          const pirn::context_value<int>::binding newer(other, 8);
          static_cast<void>(pirn::this_fiber::sleep_for(1ms));
          ++at;
        }
        EXPECT_EQ(seen, (std::vector<int>{1, 7}));
      });
    }
  }
}

TEST(yield_in_first_half, a_scope_waits_for_the_half_that_inherits_it) {
  for (const bool taken : {false, true}) {
    for (const unsigned workers : {1u, 2u}) {
      on_migratable(workers, [&] {
        for (int i = 0; i < scaled(20); ++i) {
          std::atomic<bool> begun = false;
          std::atomic<bool> ended = false;
          generator<int> g = [&](auto& yield) {
            pirn::fork2(
                [&] {
                  EXPECT_TRUE(!taken || eventually([&] { return begun.load(); }));
                  yield(1);
                },
                [&] {
                  begun = true;
                  static_cast<void>(pirn::this_fiber::sleep_for(100us));
                  EXPECT_NE(pirn::this_fiber::deadline(), pirn::never);
                  pirn::scope inner;
                  inner.spawn([] {});
                  inner.join();
                  ended = true;
                });
          };
          std::optional<generator<int>::iterator> at;
          {
            pirn::scope closing({.deadline = pirn::clock::now() + 1h});
            at.emplace(g.begin());
          }
          EXPECT_TRUE(ended);
          ++*at;
          EXPECT_EQ(*at, std::default_sentinel);
        }
      });
    }
  }
}

TEST(yield_in_first_half, a_stop_of_that_scope_reaches_the_half) {
  on_migratable(2, [] {
    std::atomic<bool> begun = false;
    bool stopped = false;
    generator<int> g = [&](auto& yield) {
      pirn::fork2(
          [&] {
            EXPECT_TRUE(eventually([&] { return begun.load(); }));
            yield(1);
          },
          [&] {
            begun = true;
            stopped = !pirn::this_fiber::sleep_for(1h);
          });
    };
    std::optional<generator<int>::iterator> at;
    {
      pirn::scope closing;
      at.emplace(g.begin());
      closing.request_stop();
    }
    EXPECT_TRUE(stopped);
    ++*at;
  });
}

// Otherwise the two race for the generator's state, which TSan reports.
TEST(yield_in_first_half, a_taken_half_is_refused_beside_a_first_one_that_yields) {
  on_migratable(2, [] {
    const auto inner = [](generator<int>::yield& own) { own(100); };
    std::atomic<bool> stop = false;
    int expected = 0;
    for (const int each : generator<int>([&](generator<int>::yield& yield) {
           fork_apart(
               [&] {
                 for (int i = 0; i < scaled(50); ++i) {
                   yield(i);
                 }
                 stop = true;
               },
               [&] {
                 while (!stop) {
                   EXPECT_TRUE(refused([&] { yield(100); }));
                   EXPECT_TRUE(refused([&] { yield(pirn::elements_of(generator<int>(inner))); }));
                   pirn::this_fiber::yield();
                 }
               });
         })) {
      EXPECT_EQ(each, expected++);
    }
  });
}

/// Notes its end.
struct noted {
  noted(std::vector<int>& to, int what) : to_(to), what_(what) {}
  noted(const noted&) = delete;
  noted& operator=(const noted&) = delete;
  ~noted() { to_.push_back(what_); }

 private:
  std::vector<int>& to_;
  int what_;
};

TEST(yield_in_first_half, a_generator_is_destroyed_in_a_second_half_that_is_a_call) {
  on_migratable(1, [] {
    for (const bool fails : {false, true}) {
      std::vector<int> unwound;
      {
        generator<int> g = [&](auto& yield) {
          const noted outer{unwound, 2};
          std::shared_ptr<noted> result = std::make_shared<noted>(unwound, 3);
          pirn::fork2(
              [&] {
                if (fails) {
                  throw std::runtime_error("first");
                }
                return result;
              },
              [&] {
                const noted in_half{unwound, 1};
                yield(1);
              });
        };
        EXPECT_EQ(*g.begin(), 1);
      }
      EXPECT_EQ(unwound, (std::vector<int>{1, 3, 2}));
    }
  });
}

#if !defined(PIRN_ASAN)  // which needs more stack than so many frames can have
// So many that the table of bodies in frames cannot name each.
TEST(yield_in_first_half, halves_are_in_no_body_beside_many_in_frames) {
  on_migratable(2, [] {
    const auto once = [](auto& yield) { yield(1); };
    using framed = generator<int, frame<4096>>;
    framed beside[] = {once, once, once, once, once, once, once, once, once};
    std::vector<framed::iterator> at;
    for (framed& each : beside) {
      at.push_back(each.begin());
    }
    fork_apart(
        [] {
          EXPECT_FALSE(in_body());
          fork_apart([] { EXPECT_FALSE(in_body()); }, [] { EXPECT_FALSE(in_body()); });
        },
        [] { EXPECT_FALSE(in_body()); });
    for (framed::iterator& each : at) {
      ++each;  // to the end: an early end would unwind on the small stack
    }
  });
}
#endif

TEST(yield_in_first_half_death, another_fiber_does_not_take_it_to_the_end) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  int firsts = 0;
  int seconds = 0;
  EXPECT_DEATH(on_migratable(1,
                             [&] {
                               generator<int> g = yields_in_first_half{firsts, seconds};
                               auto at = g.begin();
                               ++at;
                               pirn::spawn([&] { ++at; }, {.migratable = true}).join();
                             }),
               "was resumed by a fiber other than the caller of fork2");
  EXPECT_DEATH(on_migratable(1,
                             [&] {
                               const generator<int> g = yields_in_first_half{firsts, seconds};
                               static_cast<void>(const_cast<generator<int>&>(g).begin());
                             }),
               "a generator that is destroyed while it is suspended there");
  EXPECT_DEATH(on_migratable(1,
                             [&] {
                               std::optional<generator<int>> g;
                               std::optional<generator<int>::iterator> at;
                               pirn::spawn(
                                   [&] {
                                     g.emplace(yields_in_first_half{firsts, seconds});
                                     at.emplace(g->begin());
                                   },
                                   {.migratable = true})
                                   .join();
                               pirn::spawn(
                                   [&] {
                                     ++*at;
                                     ++*at;
                                   },
                                   {.migratable = true})
                                   .join();  // in the same block
                             }),
               "was resumed by a fiber other than the caller of fork2");
}

}  // namespace
