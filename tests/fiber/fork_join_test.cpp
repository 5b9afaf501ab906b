// `fork2` and scopes with eager children: results, exceptions, stops, and continuations that other workers steal.
#include "pirn/fiber/fork_join.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <unwind.h>

#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>

#include "fiber/support.hpp"
#include "pirn/fiber/context_value.hpp"
#include "pirn/fiber/fiber_local.hpp"

namespace {

using namespace pirn_test;

/// Runs `body` as a migratable fiber of a runtime, and rethrows its exceptions.
template <class F>
void on_migratable(pirn::runtime& rt, F body) {
  rt.spawn(body, {.name = "forks", .migratable = true}).join();
}
template <class F>
void on_migratable(unsigned workers, F body) {
  rig r(workers);
  on_migratable(r.rt, body);
}

PIRN_NOINLINE long fib(long n) {
  if (n < 2) {
    return n;
  }
  auto [a, b] = pirn::fork2([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
  return a + b;
}

TEST(fork_join, both_are_called_and_results_of_any_kind_are_returned) {
  on_migratable(1, [] {
    int place = 7;
    auto [number, text] = pirn::fork2([] { return 42; }, [] { return std::string(100, 'x'); });
    EXPECT_EQ(number, 42);
    EXPECT_EQ(text, std::string(100, 'x'));
    auto [reference, owner] = pirn::fork2([&]() -> int& { return place; }, [] { return std::make_unique<int>(3); });
    EXPECT_EQ(&reference, &place);
    EXPECT_EQ(*owner, 3);
    int order = 0;
    static_assert(std::is_same_v<decltype(pirn::fork2([] {}, [] {})), std::pair<std::monostate, std::monostate>>);
    pirn::fork2([&] { EXPECT_EQ(order++, 0); }, [&] { EXPECT_EQ(order++, 1); });
    EXPECT_EQ(order, 2);
  });
}

TEST(fork_join, calls_nest) {
  for (const unsigned workers : {1u, 2u, 4u}) {
    on_migratable(workers, [] { EXPECT_EQ(fib(scaled(200) / 10), scaled(200) == 200 ? 6765 : 1); });
  }
}

TEST(fork_join, a_worker_that_has_nothing_to_do_takes_the_continuation) {
  rig r(2);
  on_migratable(r.rt, [&] {
    const std::uint64_t number = pirn::this_fiber::number();
    for (int i = 0; i < scaled(50); ++i) {
      std::thread::id first;
      std::thread::id second;
      std::atomic<bool> begun = false;
      // The first half does not suspend, so only another worker can run the second half meanwhile.
      auto [a, b] = pirn::fork2(
          [&] {
            compute_until([&] { return begun.load(); });
            first = std::this_thread::get_id();
            EXPECT_EQ(pirn::this_fiber::number(), number);
            return 1;
          },
          [&] {
            second = std::this_thread::get_id();
            EXPECT_NE(pirn::this_fiber::number(), number);
            begun = true;
            return 2;
          });
      EXPECT_EQ(a + b, 3);
      EXPECT_NE(first, second);
      EXPECT_EQ(pirn::this_fiber::number(), number);
      EXPECT_EQ(pirn::this_fiber::name(), "forks");
    }
  });
}

TEST(fork_join, a_worker_that_sleeps_is_woken_for_a_continuation) {
  rig r(2);
  on_migratable(r.rt, [&] {
    for (int i = 0; i < scaled(20); ++i) {
      // The other worker has parked again, for the first time here or after the last round.
      ASSERT_TRUE(eventually([&, before = r.rt.statistics(0).parks + r.rt.statistics(1).parks] {
        return r.rt.statistics(0).parks + r.rt.statistics(1).parks > before;
      }));
      std::atomic<bool> begun = false;
      pirn::fork2([&] { compute_until([&] { return begun.load(); }); }, [&] { begun = true; });
    }
  });
}

TEST(fork_join, either_may_wait_for_the_other) {
  for (const unsigned workers : {1u, 2u}) {
    on_migratable(workers, [] {
      for (int i = 0; i < scaled(200); ++i) {
        event to_first;
        event to_second;
        auto [a, b] = pirn::fork2(
            [&] {
              to_first.wait();
              to_second.signal();
              to_first.wait();
              return pirn::this_fiber::number();
            },
            [&] {
              to_first.signal();
              to_second.wait();
              to_first.signal();
              return pirn::this_fiber::number();
            });
        EXPECT_NE(a, b);
      }
    });
  }
}

constexpr int tree_depth = slowdown == 1 ? 10 : 5;

/// Counts the leaves of a binary tree. Each leaf suspends in one of several ways.
PIRN_NOINLINE long suspending_leaves(int depth, long path) {
  if (depth == 0) {
    pause(static_cast<int>(path % 3));
    return 1;
  }
  auto [a, b] = pirn::fork2([=] { return suspending_leaves(depth - 1, 2 * path); },
                            [=] { return suspending_leaves(depth - 1, 2 * path + 1); });
  return a + b;
}

TEST(fork_join, every_leaf_may_suspend) {
  for (const unsigned workers : {1u, 2u, 4u}) {
    on_migratable(workers, [] { EXPECT_EQ(suspending_leaves(tree_depth, 1), 1L << tree_depth); });
  }
}

TEST(fork_join, the_first_half_nests_deeper_than_a_worker_can_keep_open) {
  static constexpr int depth = scaled(5000);
  struct nested {
    static int go(int left) {
      return left == 0 ? 0 : std::get<0>(pirn::fork2([=] { return go(left - 1) + 1; }, [] {}));
    }
  };
  on_migratable(1, [] { EXPECT_EQ(nested::go(depth), depth); });
}

TEST(fork_join, what_either_throws_is_rethrown_when_both_have_ended) {
  for (const bool taken : {false, true}) {
    on_migratable(2, [&] {
      const auto meet = [&](std::atomic<int>& here) {
        ++here;
        if (taken) {
          compute_until([&] { return here == 2; });
        }
      };
      std::atomic<int> begun = 0;
      bool second_ended = false;
      EXPECT_THROW(pirn::fork2(
                       [&] {
                         meet(begun);
                         throw std::runtime_error("first");
                       },
                       [&] {
                         meet(begun);
                         second_ended = true;
                       }),
                   std::runtime_error);
      EXPECT_TRUE(second_ended);

      begun = 0;
      auto result = std::make_shared<int>(1);
      EXPECT_THROW(pirn::fork2(
                       [&] {
                         meet(begun);
                         return result;
                       },
                       [&]() -> int {
                         meet(begun);
                         throw std::logic_error("second");
                       }),
                   std::logic_error);
      EXPECT_EQ(result.use_count(), 1);

      begun = 0;
      try {
        pirn::fork2(
            [&] {
              meet(begun);
              throw std::runtime_error("first");
            },
            [&] {
              meet(begun);
              throw std::logic_error("second");
            });
        ADD_FAILURE();
      } catch (const std::runtime_error& what) {
        EXPECT_STREQ(what.what(), "first");
        const auto others = pirn::attached_exceptions();
        ASSERT_EQ(others.size(), 1u);
        EXPECT_THROW(std::rethrow_exception(others[0]), std::logic_error);
      }
    });
  }
}

TEST(fork_join, exceptions_in_flight_stay_with_the_caller) {
  for (const bool taken : {false, true}) {
    on_migratable(2, [&] {
      std::atomic<bool> begun = !taken;
      try {
        try {
          throw std::runtime_error("outer");
        } catch (const std::runtime_error&) {
          pirn::fork2(
              [&] {
                EXPECT_EQ(std::current_exception(), nullptr);
                try {
                  throw 1;
                } catch (int) {
                  compute_until([&] { return begun.load(); });
                  pirn::this_fiber::yield();
                  EXPECT_NE(std::current_exception(), nullptr);
                }
              },
              [&] {
                begun = true;
                pirn::this_fiber::yield();
                EXPECT_NE(std::current_exception(), nullptr);
              });
          throw;
        }
      } catch (const std::runtime_error& what) {
        EXPECT_STREQ(what.what(), "outer");
      }
      EXPECT_EQ(std::current_exception(), nullptr);
    });
  }
}

TEST(fork_join, who_is_not_migratable_is_refused) {
  rig r(2);
  const auto refused = [] {
    bool called = false;
    try {
      pirn::fork2([&] { called = true; }, [&] { called = true; });
      ADD_FAILURE();
    } catch (const std::system_error& why) {
      EXPECT_EQ(why.code(), std::errc::operation_not_permitted);
    }
    EXPECT_FALSE(called);
  };
  refused();
  r.rt.run(refused);
  r.rt.spawn(refused, {.worker = pirn::spawn_options::any_worker}).join();
  // Also just after a fork on the same worker.
  on_migratable(1, [&] {
    fib(5);
    pirn::spawn(refused).join();
  });
}

TEST(fork_join, without_a_stack_neither_is_called) {
  pirn::guarded_pool pool({.max_stacks = 2});
  pirn::runtime rt({.workers = 1, .stacks = &pool});
  on_migratable(rt, [] {
    int calls = 0;
    EXPECT_THROW(pirn::fork2([&] { pirn::fork2([&] { ++calls; }, [&] { ++calls; }); }, [&] { calls += 10; }),
                 std::system_error);
    EXPECT_EQ(calls, 10);
  });
}

TEST(fork_join, a_stop_reaches_both) {
  for (const unsigned workers : {1u, 2u}) {
    rig r(workers);
    std::atomic<int> waiting = 0;
    const auto wait = [&] {
      ++waiting;
      const auto ended = pirn::this_fiber::sleep_until(pirn::platform::never);
      EXPECT_EQ(ended.error(), pirn::wait_error::stopped);
    };
    // The second half of the inner call is a stolen continuation of a stolen continuation.
    pirn::fiber f = r.rt.spawn([&] { pirn::fork2(wait, [&] { pirn::fork2(wait, wait); }); }, {.migratable = true});
    ASSERT_TRUE(eventually([&] { return waiting == 3; }));
    f.request_stop();
    f.join();

    on_migratable(r.rt, [&] {
      waiting = 0;
      {
        pirn::scope outside;
        outside.spawn([&] {
          ASSERT_TRUE(eventually([&] { return waiting == 2; }));
          outside.request_stop();
        });
        pirn::fork2(wait, wait);
      }
      EXPECT_TRUE(pirn::this_fiber::check_stop());

      const auto expire = [] {
        const auto ended = pirn::this_fiber::sleep_until(pirn::platform::never);
        EXPECT_EQ(ended.error(), pirn::wait_error::expired);
      };
      {
        pirn::scope timed({.deadline = clock::now() + 1ms});
        pirn::fork2(expire, expire);
      }
      EXPECT_TRUE(pirn::this_fiber::check_stop());
    });
  }
}

TEST(fork_join, a_stop_of_a_scope_within_one_half_leaves_the_other_alone) {
  on_migratable(2, [] {
    event ended;
    pirn::fork2(
        [&] {
          {
            pirn::scope inner;
            inner.request_stop();
            EXPECT_FALSE(pirn::this_fiber::check_stop());
            pirn::this_fiber::yield();  // by now another worker runs the second half
            static_cast<void>(pirn::this_fiber::sleep_until(clock::now()));
          }
          ended.wait();
        },
        [&] {
          EXPECT_TRUE(pirn::this_fiber::check_stop());
          ended.signal();
        });
  });
}

pirn::context_value<int> bound;
pirn::fiber_local<std::shared_ptr<int>> local;

TEST(fork_join, both_see_what_is_bound_around_the_call) {
  for (const bool taken : {false, true}) {
    const auto witness = std::make_shared<int>(0);
    on_migratable(2, [&] {
      const pirn::context_value<int>::binding outer(bound, 1);
      std::atomic<bool> begun = !taken;
      pirn::fork2(
          [&] {
            const pirn::context_value<int>::binding inner(bound, 2);
            pirn::scope open;
            compute_until([&] { return begun.load(); });
            EXPECT_EQ(*bound.get(), 2);
          },
          [&] {
            EXPECT_EQ(*bound.get(), 1);
            local.get() = witness;
            begun = true;
            pirn::scope own;
            own.spawn([] { EXPECT_EQ(*bound.get(), 1); });
            own.join();
          });
      EXPECT_EQ(*bound.get(), 1);
    });
    EXPECT_EQ(witness.use_count(), 1);
  }
}

/// As `fib`, but with scopes whose children are eager.
PIRN_NOINLINE long eager_fib(long n) {
  if (n < 2) {
    return n;
  }
  pirn::scope both({.migratable = true});
  long first = 0;
  both.spawn([&first, n] { first = eager_fib(n - 1); });
  const long second = eager_fib(n - 2);
  both.join();
  return first + second;
}

TEST(fork_join, a_child_of_a_migratable_scope_is_eager) {
  for (const unsigned workers : {1u, 2u}) {
    on_migratable(workers, [&] {
      {
        pirn::scope s({.migratable = true});
        int ran = 0;
        for (int i = 0; i < 100; ++i) {
          if (workers == 1) {
            s.spawn([&] { ++ran; });
            EXPECT_EQ(ran, i + 1);
          }
        }
        // A child that suspends lets its parent continue, and so does a child that fails.
        event go;
        bool ended = false;
        s.spawn([&] {
          go.wait();
          ended = true;
        });
        EXPECT_FALSE(ended);
        go.signal();
        s.join();
        EXPECT_TRUE(ended);
        s.spawn([] { throw std::runtime_error("child"); });
        EXPECT_THROW(s.join(), std::runtime_error);
      }
      pirn::scope outer({.migratable = true});
      auto [a, b] = outer.all([] { return pirn::fork2([] { return 1; }, [] { return 2; }).second; }, [] { return 3; });
      EXPECT_EQ(a + b, 5);
      EXPECT_EQ(eager_fib(12), 144);
    });
  }
}

TEST(fork_join, a_worker_that_has_nothing_to_do_takes_the_parent) {
  on_migratable(2, [] {
    const std::uint64_t number = pirn::this_fiber::number();
    for (int i = 0; i < scaled(50); ++i) {
      std::atomic<bool> on = false;
      pirn::scope s({.migratable = true});
      s.spawn([&] { compute_until([&] { return on.load(); }); });
      EXPECT_EQ(pirn::this_fiber::number(), number);
      on = true;
      s.join();
    }
  });
}

TEST(fork_join, a_migratable_scope_queues_what_cannot_leave) {
  rig r(2);
  r.rt.run([] {
    try {
      const pirn::scope s({.migratable = true});
      ADD_FAILURE();
    } catch (const std::system_error& why) {
      EXPECT_EQ(why.code(), std::errc::operation_not_permitted);
    }
  });
  on_migratable(r.rt, [&] {
    pirn::scope s({.deadline = clock::now() + 1h, .migratable = true});
    std::atomic<bool> on = false;
    s.spawn([&] { compute_until([&] { return on.load(); }); });
    on = true;
    s.spawn([&] { s.spawn([] {}); }, {.worker = 0});
    s.join();
  });
}

TEST(fork_join, a_pinned_scope_queues_its_children_for_any_worker) {
  rig r(2);
  r.rt.run([] {
    const auto here = std::this_thread::get_id();
    pirn::scope s({.worker = pirn::spawn_options::any_worker});
    std::atomic<bool> begun = false;
    s.spawn([&] {
      EXPECT_NE(std::this_thread::get_id(), here);
      begun = true;
    });
    compute_until([&] { return begun.load(); });
  });
}

#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)  // sanitizers report it themselves
PIRN_NOINLINE int recurse(int depth) {
  volatile char frame[256];
  frame[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : recurse(depth + 1) + frame[0];
}

TEST(fork_join_death_test, a_first_half_that_overflows_its_stack_is_named) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(on_migratable(1, [] { pirn::fork2([] { return recurse(0); }, [] {}); }), testing::KilledBySignal(SIGSEGV),
              "pirn: stack overflow in fiber [0-9]+ .forks.");
}
#endif

_Unwind_Reason_Code count_frame(_Unwind_Context*, void* count) {
  return ++*static_cast<int*>(count) < 1000 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

TEST(fork_join, a_backtrace_of_either_ends) {
  on_migratable(1, [] {
    const auto frames = [] {
      int count = 0;
      _Unwind_Backtrace(&count_frame, &count);
      return count;
    };
    for (int i = 0; i < 2; ++i) {  // the second time by the fast path
      auto [first, second] = pirn::fork2(frames, frames);
      EXPECT_LT(first, 100);
      EXPECT_LT(second, 100);
    }
  });
}

/// The work at the nodes of a random tree of calls. Returns the sum of the leaves.
struct random_tree {
  std::atomic<long>& thrown;

  PIRN_NOINLINE long operator()(int depth, std::uint64_t seed) const {
    pirn::platform::random random(seed);
    const std::uint64_t chance = random.next() >> 8;
    if (depth == 0 || chance % 16 == 0) {
      switch (chance / 16 % 64) {
        case 0:
          pirn::this_fiber::yield();
          break;
        case 1:
          static_cast<void>(pirn::this_fiber::sleep_for(1us));
          break;
        case 2:
          pirn::spawn([] { pirn::this_fiber::yield(); }, {.worker = pirn::spawn_options::any_worker}).join();
          break;
        case 3:
          static_cast<void>(pirn::this_fiber::migrate_to(chance % 2));
          break;
        default:
          break;
      }
      return 1;
    }
    const std::uint64_t left = random.next();
    const std::uint64_t right = random.next();
    if (chance / 16 % 32 == 0) {
      pirn::scope group({.migratable = chance / 512 % 4 != 0});
      long first = 0;
      if (chance / 512 % 4 == 0) {
        group.spawn([&] { first = (*this)(depth - 1, left); }, {.migratable = true});
      } else {
        group.spawn([&] { first = (*this)(depth - 1, left); });
      }
      const long second = (*this)(depth - 1, right);
      group.join();
      return first + second;
    }
    const bool fails = chance / 16 % 32 == 1;
    try {
      auto [a, b] = pirn::fork2([&] { return (*this)(depth - 1, left); },
                                [&] {
                                  const long sum = (*this)(depth - 1, right);
                                  if (fails) {
                                    throw sum;
                                  }
                                  return sum;
                                });
      return a + b;
    } catch (long) {
      ++thrown;
      return 0;
    }
  }
};

TEST(fork_join, trees_at_random) {
  const unsigned seed = static_cast<unsigned>(pirn::platform::random_seed());
  SCOPED_TRACE(seed);
  pirn::platform::random random(seed);
  std::atomic<long> thrown = 0;
  const int nowhere = ::open("/dev/null", O_WRONLY);
  for (const unsigned workers : {2u, 3u}) {
    rig r(workers, {.stack_size = 256 << 10});  // a sanitizer's frames are large
    const auto end = clock::now() + 200ms;
    for (int round = 0; clock::now() < end; ++round) {
      const std::uint64_t tree = random.next();
      long sums[2] = {};
      for (long& sum : sums) {
        pirn::fiber f =
            r.rt.spawn([&] { sum = random_tree{thrown}(slowdown == 1 ? 10 : 6, tree); }, {.migratable = true});
        if (round % 4 == 0) {
          r.rt.dump(nowhere);
        }
        f.join();
      }
      EXPECT_EQ(sums[0], sums[1]);
    }
  }
  ::close(nowhere);
}

}  // namespace
