// A body that yields from inside a call which runs elsewhere: on a thread for blocking calls, or on a worker that has
// taken a second half of a fork2.
#include <stdexcept>

#include "coro/stack_swap_support.hpp"
#include "fiber/yield_support.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/fiber/blocking.hpp"

namespace {

using namespace pirn_test;
using pirn::coroutine;
using pirn::frame;
using pirn::generator;

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

TEST(yield_elsewhere, a_half_that_nobody_took_is_a_call) {
  on_migratable(1, [] {
    EXPECT_EQ(sum_of(generator<int>([](auto& yield) {
                pirn::fork2([&] { yield(1); }, [&] { yield(2); });
                yield(3);
              })),
              6);
  });
}

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
