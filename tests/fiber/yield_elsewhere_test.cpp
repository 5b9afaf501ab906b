// A body that yields from inside a call which runs elsewhere: on a thread for blocking calls, or on a worker that has
// taken a half of a fork2.
#include <atomic>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "coro/stack_swap_support.hpp"
#include "fiber/runtime_state.hpp"
#include "fiber/support.hpp"
#include "pirn/coro/copied_coroutine.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/fiber/blocking.hpp"
#include "pirn/fiber/context_value.hpp"
#include "pirn/fiber/fork_join.hpp"
#include "pirn/fiber/scope.hpp"

namespace {

using namespace pirn_test;
using pirn::coroutine;
using pirn::frame;
using pirn::generator;

/// Returns whether `f` is refused, with the message for this misuse.
template <class F>
bool refused(F&& f) {
  try {
    f();
  } catch (const std::logic_error& why) {
    EXPECT_NE(std::string(why.what()).find("a body yields from inside blocking() or from a half of fork2"),
              std::string::npos)
        << why.what();
    return true;
  }
  return false;
}

template <class Generator>
int sum_of(Generator&& of) {
  int sum = 0;
  for (const int each : of) {
    sum += each;
  }
  return sum;
}

// ---- blocking ----

template <class Generator>
void generator_in_blocking() {
  on_one_worker([] {
    EXPECT_EQ(sum_of(Generator([](auto& yield) {
                yield(1);
                EXPECT_TRUE(refused([&] { pirn::blocking([&] { yield(100); }); }));
                yield(2);
                EXPECT_TRUE(refused([&] { pirn::blocking([&] { yield(100); }); }));
              })),
              3);
  });
}

TEST(yield_elsewhere, a_generator_does_not_yield_inside_a_blocking_call) { generator_in_blocking<generator<int>>(); }
TEST(yield_elsewhere, nor_does_one_in_a_frame) { generator_in_blocking<generator<int, frame<32768>>>(); }

TEST(yield_elsewhere, nor_does_one_that_another_delegates_to) {
  on_one_worker([] {
    EXPECT_EQ(sum_of(generator<int>([](generator<int>::yield& yield) {
                yield(pirn::elements_of(generator<int>([](generator<int>::yield& inner) {
                  EXPECT_TRUE(refused([&] { pirn::blocking([&] { inner(100); }); }));
                  inner(1);
                })));
                yield(2);
              })),
              3);
  });
}

TEST(yield_elsewhere, nor_does_a_coroutine) {
  on_one_worker([] {
    coroutine<int()> c([](auto& yield) {
      EXPECT_THROW(pirn::blocking([&] { yield(100); }), std::logic_error);
      yield(1);
      return 2;
    });
    EXPECT_EQ(c.resume(), 1);
    EXPECT_EQ(c.resume(), 2);
  });
}

TEST(yield_elsewhere, nor_does_a_copied_coroutine) {
  on_one_worker([] {
    pirn::copy_stack on(65536);
    pirn::copied_coroutine<int()> c(on, [](auto& yield) {
      EXPECT_THROW(pirn::blocking([&] { yield(100); }), std::logic_error);
      return 1;
    });
    EXPECT_EQ(c.resume(), 1);
  });
}

TEST(yield_elsewhere_death, nor_does_a_swapped_task) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(on_one_worker([] {
                 swap_support::world w;
                 w.spawn([&] { pirn::blocking([&] { w.yield(); }); });
                 w.spawn([] {});
                 static_cast<void>(w.swap.run());
               }),
               "block was called on another stack than the dispatcher's");
}

TEST(yield_elsewhere, nor_does_a_body_that_resumed_the_one_that_waits) {
  on_one_worker([] {
    EXPECT_EQ(sum_of(generator<int>([](auto& yield) {
                coroutine<void()> inner([&](auto&) {
                  EXPECT_TRUE(refused([&] { pirn::blocking([&] { yield(100); }); }));
                  yield(1);
                });
                inner.resume();
                yield(2);
              })),
              3);
  });
}

TEST(yield_elsewhere, nor_from_a_body_that_the_call_resumes) {
  on_one_worker([] {
    EXPECT_EQ(sum_of(generator<int>([](auto& yield) {
                pirn::blocking(
                    [&] { coroutine<void()>([&](auto&) { EXPECT_TRUE(refused([&] { yield(100); })); }).resume(); });
                yield(1);
              })),
              1);
  });
}

TEST(yield_elsewhere, what_a_blocking_call_resumes_itself_may_yield) {
  const auto numbers = [](auto& yield) {
    for (int i = 1; i <= 3; ++i) {
      yield(i);
    }
  };
  const auto resumes = [&] {
    EXPECT_EQ(sum_of(generator<int>(numbers)), 6);
    EXPECT_EQ(sum_of(generator<int, frame<32768>>(numbers)), 6);
    coroutine<int()> c([&](auto& yield) {
      yield(sum_of(generator<int>(numbers)));
      return 1;
    });
    EXPECT_EQ(c.resume(), 6);
    EXPECT_EQ(c.resume(), 1);
    pirn::copy_stack on(65536);
    pirn::copied_coroutine<int()> copied(on, [](auto& yield) {
      yield(1);
      return 2;
    });
    EXPECT_EQ(copied.resume() + copied.resume(), 3);
  };
  on_one_worker([&] {
    pirn::blocking(resumes);
    EXPECT_EQ(sum_of(generator<int>([&](auto& yield) {
                pirn::blocking(resumes);
                yield(1);
                pirn::blocking(resumes);
              })),
              1);
    pirn::blocking(resumes);
  });
}

TEST(yield_elsewhere, where_no_body_waits_every_one_may_yield) {
  on_one_worker([] {
    pirn::blocking([] {
      EXPECT_EQ(sum_of(generator<int>([](auto& yield) {
                  coroutine<void()>([&](auto&) { yield(1); }).resume();
                  yield(2);
                })),
                3);
    });
  });
}

TEST(yield_elsewhere, on_a_plain_thread_blocking_is_a_call) {
  EXPECT_EQ(sum_of(generator<int>([](auto& yield) { pirn::blocking([&] { yield(1); }); })), 1);
}

// ---- fork2 ----

template <class F>
void on_migratable(unsigned workers, F body) {
  rig r(workers);
  r.rt.spawn(body, {.migratable = true}).join();
}

TEST(yield_elsewhere, a_half_that_nobody_took_is_a_call) {
  on_migratable(1, [] {
    EXPECT_EQ(sum_of(generator<int>([](auto& yield) {
                pirn::fork2([&] { yield(1); }, [&] { yield(2); });
                yield(3);
              })),
              6);
  });
}

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

TEST(yield_elsewhere, a_generator_yields_in_a_first_half) {
  consume_in_first_half([](auto next) {
    next();
    next();
  });
}

TEST(yield_elsewhere, its_consumer_may_fork_meanwhile) {
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

TEST(yield_elsewhere, its_consumer_may_wait_meanwhile) {
  consume_in_first_half([](auto next) {
    pirn::this_fiber::yield();
    static_cast<void>(pirn::this_fiber::sleep_for(10us));
    int second = 0;
    pirn::fork2([&] { next(); }, [&] { ++second; });
    pirn::fork2([&] { next(); }, [&] { ++second; });
    EXPECT_EQ(second, 2);
  });
}

/// Forks. The second half begins before the first has ended.
template <class First, class Second>
void fork_apart(First first, Second second) {
  std::atomic<bool> begun = false;
  pirn::fork2(
      [&] {
        EXPECT_TRUE(eventually([&] { return begun.load(); }));
        first();
      },
      [&] {
        begun = true;
        second();
      });
}

bool in_body() { return pirn::detail::position_in_body(pirn::detail::current_agent()) != 0; }

// The suspended first half whose continuation is stolen is not the innermost: its consumer forks on a stack further
// out. Each side knows its own stack, so that its scopes are not taken for a body's.
TEST(yield_elsewhere, its_consumer_and_the_halves_know_their_stacks) {
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

TEST(yield_elsewhere, blocks_of_a_first_half_leave_with_the_body) {
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

TEST(yield_elsewhere, a_taken_half_keeps_the_values_around_it) {
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

#if !defined(PIRN_ASAN)  // which needs more stack than so many frames can have
// So many that the table of bodies in frames cannot name each.
TEST(yield_elsewhere, halves_are_in_no_body_beside_many_in_frames) {
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

TEST(yield_elsewhere, a_second_half_within_a_first_one_was_taken) {
  on_migratable(2, [] {
    EXPECT_EQ(
        sum_of(generator<int>([](auto& yield) {
          pirn::fork2(
              [&] {
                fork_apart(
                    [] {
                      EXPECT_EQ(sum_of(generator<int>([](auto& own) { pirn::fork2([&] { own(4); }, [] {}); })), 4);
                    },
                    [&] {
                      EXPECT_TRUE(refused([&] { yield(100); }));
                      EXPECT_EQ(sum_of(generator<int>([](auto& own) { pirn::fork2([&] { own(4); }, [] {}); })), 4);
                    });
              },
              [] {});
          yield(1);
        })),
        1);
  });
}

TEST(yield_elsewhere_death, another_fiber_does_not_take_it_to_the_end) {
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

TEST(yield_elsewhere, a_body_does_not_yield_in_a_second_half_that_was_taken) {
  for (const unsigned workers : {1u, 2u}) {
    on_migratable(workers, [] {
      EXPECT_EQ(sum_of(generator<int>([](auto& yield) {
                  for (int i = 0; i < 3; ++i) {
                    EXPECT_TRUE(refused([&] { fork_apart([] {}, [&] { yield(100); }); }));
                    yield(i);
                  }
                })),
                3);
      coroutine<int()> c([](auto& yield) {
        fork_apart([] {},
                   [&] {
                     pirn::this_fiber::yield();
                     EXPECT_TRUE(refused([&] { yield(100); }));
                     static_cast<void>(pirn::this_fiber::sleep_for(1ms));
                     EXPECT_TRUE(refused([&] { yield(100); }));
                     pirn::fork2([&] { EXPECT_THROW(yield(100), std::logic_error); },
                                 [&] { EXPECT_TRUE(refused([&] { yield(100); })); });
                   });
        yield(1);
        return 2;
      });
      EXPECT_EQ(c.resume(), 1);
      EXPECT_EQ(c.resume(), 2);
    });
  }
}

TEST(yield_elsewhere, halves_resume_bodies_of_their_own_wherever_they_run) {
  on_migratable(2, [] {
    const auto count = [] {
      EXPECT_EQ(sum_of(generator<int>([](auto& yield) {
                  for (int i = 0; i < 3; ++i) {
                    pirn::this_fiber::yield();
                    yield(i);
                  }
                })),
                3);
    };
    const auto forks = [&] {
      for (int i = 0; i < scaled(20); ++i) {
        pirn::fork2(count, count);
        fork_apart(count, count);
      }
    };
    forks();
    EXPECT_EQ(sum_of(generator<int>([&](auto& yield) {
                forks();
                yield(1);
              })),
              1);
  });
}

TEST(yield_elsewhere, a_half_resumes_a_body_that_was_made_outside) {
  on_migratable(2, [] {
    generator<int> g = [](auto& yield) {
      for (int i = 1;; ++i) {
        yield(i);
      }
    };
    auto at = g.begin();
    for (int i = 0; i < scaled(100); ++i) {
      fork_apart([] {}, [&] { ++at; });
      fork_apart([&] { ++at; }, [] {});
    }
    EXPECT_EQ(*at, 2 * scaled(100) + 1);
  });
}

}  // namespace
