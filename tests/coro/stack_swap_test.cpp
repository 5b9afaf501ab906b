// Threads of control that take turns on one native stack.
#include "pirn/coro/stack_swap.hpp"

#include <alloca.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "pirn/coro/coroutine.hpp"

namespace {

using pirn::swap_error;

/// A policy that counts: a queue of who is ready, and buffers of malloc's.
class scheduler {
 public:
  enum class order : std::uint8_t { fifo, lifo, any };

  explicit scheduler(order how = order::fifo) : order_(how) {}
  ~scheduler() { EXPECT_EQ(buffers_.size(), 0u) << "every buffer comes back"; }

  void ready(pirn::swap_thread& who) { ready_.push_back(&who); }
  void forget(const pirn::swap_thread& who) { std::erase(ready_, &who); }
  pirn::swap_thread* next() noexcept {
    if (ready_.empty()) {
      return nullptr;
    }
    std::size_t at = 0;
    if (order_ == order::lifo) {
      at = ready_.size() - 1;
    } else if (order_ == order::any) {
      at = random_() % ready_.size();
    }
    pirn::swap_thread* const chosen = ready_[at];
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(at));
    return chosen;
  }
  void* allocate(std::size_t size) noexcept {
    if (++allocations == fail_at) {
      return nullptr;
    }
    void* const buffer = std::malloc(size);
    std::memset(buffer, 0xdb, size);
    buffers_[buffer] = size;
    return buffer;
  }
  void free(void* buffer, std::size_t size) noexcept {
    EXPECT_EQ(buffers_.count(buffer), 1u) << "a buffer of this policy";
    EXPECT_EQ(buffers_[buffer], size);
    buffers_.erase(buffer);
    std::free(buffer);
  }

  std::size_t allocations = 0;
  std::size_t fail_at = 0;  // which allocation fails, counted from 1

 private:
  order order_;
  std::minstd_rand random_{1};
  std::deque<pirn::swap_thread*> ready_;
  std::map<void*, std::size_t> buffers_;
};

using dispatcher = pirn::stack_swap<scheduler>;

/// A thread of control that calls something.
struct unit : pirn::swap_thread {
  using pirn::swap_thread::swap_thread;
  std::function<void()> work;

  static void run(unit& self) { self.work(); }
};

/// A dispatcher, its policy and its threads of control.
struct world {
  explicit world(scheduler::order how = scheduler::order::fifo) : policy(how) {}

  unit& spawn(std::function<void()> work) { return start(units.emplace_back(), std::move(work)); }
  unit& start(unit& who, std::function<void()> work) {
    who.work = std::move(work);
    who.assign<&unit::run>(who);
    policy.ready(who);
    return who;
  }
  /// Lets the others run and comes back.
  void yield() {
    policy.ready(*swap.current());
    ASSERT_EQ(swap.block(), swap_error::none);
  }

  scheduler policy;
  dispatcher swap{policy};
  std::deque<unit> units;
};

struct count_destroyed {
  int& count;
  ~count_destroyed() { ++count; }
};

TEST(StackSwap, OneThatNeverBlocksIsNotCopied) {
  world w;
  int ran = 0;
  for (int i = 0; i < 1000; ++i) {
    w.spawn([&] { ++ran; });
  }
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_EQ(ran, 1000);
  EXPECT_EQ(w.swap.statistics().images, 0u);
  EXPECT_EQ(w.swap.statistics().bytes, 0u);
  EXPECT_EQ(w.policy.allocations, 0u);
  EXPECT_TRUE(w.units.front().done());
}

TEST(StackSwap, OneThatIsNextItselfIsNotCopied) {
  world w;
  w.spawn([&] {
    for (int i = 0; i < 10; ++i) {
      w.yield();
    }
  });
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_EQ(w.swap.statistics().images, 0u);
}

TEST(StackSwap, TakesTurns) {
  world w;
  std::string said;
  for (const char* const name : {"a", "b", "c"}) {
    w.spawn([&w, &said, name] {
      for (int i = 0; i < 3; ++i) {
        said += name;
        w.yield();
      }
    });
  }
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_EQ(said, "abcabcabc");
  EXPECT_EQ(w.swap.statistics().images, 9u);  // nobody is next itself: those of the last round go to their ends
  EXPECT_GE(w.swap.statistics().bytes, 9 * w.units[0].image_size());
}

/// Blocks at many depths, with frames of many sizes, and finds all of them as it left them.
std::uint64_t wander(world& w, std::minstd_rand& random, int depth) {
  const std::size_t size = random() % 200 + 1;
  auto* const bytes = static_cast<unsigned char*>(alloca(size));
  const auto mark = static_cast<unsigned char>(random());
  std::memset(bytes, mark, size);
  alignas(32) std::uint64_t aligned[4] = {random(), random(), random(), random()};
  const std::uint64_t sum = aligned[0] + aligned[1] + aligned[2] + aligned[3];
  double real = static_cast<double>(sum) * 1.5;
  long double wide = static_cast<long double>(sum) * 2.5L;
  std::uint64_t total = sum;
  const auto look = [&] {
    for (std::size_t i = 0; i < size; ++i) {
      if (bytes[i] != mark) {
        ADD_FAILURE() << "byte " << i << " of " << size;
        return;
      }
    }
    EXPECT_EQ(aligned[0] + aligned[1] + aligned[2] + aligned[3], sum);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 32, 0u);
    EXPECT_EQ(real, static_cast<double>(sum) * 1.5);
    EXPECT_EQ(wide, static_cast<long double>(sum) * 2.5L);
  };
  for (int step = 0; step < 3; ++step) {
    if (random() % 2 != 0) {
      w.yield();
      look();
    }
    if (depth > 0 && random() % 3 != 0) {
      total += wander(w, random, depth - 1);
      look();
    }
    real *= 1.0;
    wide *= 1.0L;
  }
  return total;
}

class Orders : public testing::TestWithParam<scheduler::order> {};
INSTANTIATE_TEST_SUITE_P(StackSwap, Orders,
                         testing::Values(scheduler::order::fifo, scheduler::order::lifo, scheduler::order::any));

TEST_P(Orders, ThousandsBlockAnywhere) {
#if defined(PIRN_TSAN)
  constexpr unsigned many = 100;  // its fibers are few
#else
  constexpr unsigned many = 1000;
#endif
  world w(GetParam());
  std::uint64_t ended = 0;
  for (unsigned i = 0; i < many; ++i) {
    w.spawn([&w, &ended, i] {
      std::minstd_rand random(i + 1);
      wander(w, random, static_cast<int>(i % 8));
      ++ended;
    });
  }
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_EQ(ended, many);
  if (GetParam() == scheduler::order::lifo) {
    EXPECT_EQ(w.swap.statistics().images, 0u);  // everyone is next itself
  } else {
    EXPECT_GT(w.swap.statistics().images, many);
  }
}

TEST(StackSwap, LargeImages) {
  world w;
  for (unsigned char mark = 1; mark <= 5; ++mark) {
    w.spawn([&w, mark] {
      std::vector<std::size_t> sizes = {100, 100'000, 1'000, 200'000};
      for (const std::size_t size : sizes) {
        [&w, mark, size]() __attribute__((noinline)) {
          auto* const bytes = static_cast<unsigned char*>(alloca(size));
          std::memset(bytes, mark, size);
          w.yield();
          EXPECT_EQ(bytes[0], mark);
          EXPECT_EQ(bytes[size / 2], mark);
          EXPECT_EQ(bytes[size - 1], mark);
        }();
      }
    });
  }
  EXPECT_EQ(w.swap.run(), swap_error::none);
}

TEST(StackSwap, SpawnsWhileItRuns) {
  world w;
  int ended = 0;
  std::function<void(int)> spawn = [&](int depth) {
    w.spawn([&w, &spawn, &ended, depth] {
      w.yield();
      if (depth > 0) {
        spawn(depth - 1);
        spawn(depth - 1);
      }
      w.yield();
      ++ended;
    });
  };
  spawn(5);
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_EQ(ended, 63);
}

TEST(StackSwap, OneUnitAgainAndAgain) {
  world w;
  unit& who = w.units.emplace_back();
  int ended = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(who.done());
    w.start(who, [&] {
      w.spawn([&] { w.yield(); });
      w.yield();
      ++ended;
    });
    EXPECT_FALSE(who.done());
    EXPECT_EQ(w.swap.run(), swap_error::none);
  }
  EXPECT_EQ(ended, 3);
}

TEST(StackSwap, DispatchersOnManyThreads) {
  constexpr int many = 4;
  std::vector<std::thread> threads;
  int ended[many] = {};
  for (int i = 0; i < many; ++i) {
    threads.emplace_back([i, &ended] {
      world w(scheduler::order::any);
      for (unsigned k = 0; k < 50; ++k) {
        w.spawn([&w, &ended, i, k] {
          std::minstd_rand random(k + 1);
          wander(w, random, 4);
          ++ended[i];
        });
      }
      EXPECT_EQ(w.swap.run(), swap_error::none);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const int each : ended) {
    EXPECT_EQ(each, 50);
  }
}

TEST(StackSwap, DispatcherInsideAThreadOfControl) {
  world outer;
  std::string said;
  for (const char* const name : {"a", "b"}) {
    outer.spawn([&outer, &said, name] {
      world inner;
      for (int i = 0; i < 2; ++i) {
        inner.spawn([&, i] {
          inner.yield();
          said += name + std::to_string(i);
          outer.yield();  // takes the inner dispatcher with it
          said += name + std::to_string(i);
          inner.yield();
        });
      }
      EXPECT_EQ(inner.swap.run(), swap_error::none);
    });
  }
  EXPECT_EQ(outer.swap.run(), swap_error::none);
  EXPECT_EQ(said, "a0b0a0a1b0b1a1b1");
}

// ---- buffers --------------------------------------------------------------------------------------------------------

TEST(StackSwap, FailedAllocationLosesNothing) {
  constexpr std::size_t many = 10;
  for (std::size_t nth = 1; nth <= many; ++nth) {
    world w;
    w.policy.fail_at = nth;
    int refused = 0;
    int ended = 0;
    for (std::size_t i = 0; i < many; ++i) {
      w.spawn([&] {
        std::uint64_t before = w.policy.allocations * 3;
        const std::uint64_t same = before;
        w.policy.ready(*w.swap.current());
        const swap_error error = w.swap.block();
        if (error != swap_error::none) {
          EXPECT_EQ(error, swap_error::out_of_memory);
          ++refused;
          w.policy.forget(*w.swap.current());
        }
        EXPECT_EQ(before, same);
        ++ended;
      });
    }
    EXPECT_EQ(w.swap.run(), swap_error::none);
    EXPECT_EQ(refused, 1);
    EXPECT_EQ(ended, static_cast<int>(many));
  }
}

TEST(StackSwap, LentBuffersAreUsed) {
  alignas(16) static char memory[2][4096];
  world w;
  for (auto& each : memory) {
    unit& who = w.units.emplace_back(each, sizeof each);
    w.start(who, [&] { w.yield(); });
  }
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_EQ(w.policy.allocations, 0u);
  EXPECT_EQ(w.swap.statistics().images, 2u);
}

TEST(StackSwap, LentBuffersOfAnyAlignmentAndTooSmallOnes) {
  static char memory[2][4099];
  world w;
  w.start(w.units.emplace_back(memory[0] + 3, 4096), [&] { w.yield(); });
  w.start(w.units.emplace_back(memory[1] + 1, 20), [&] {
    w.yield();
    w.yield();
  });
  std::memset(memory[1], 7, sizeof memory[1]);
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_EQ(w.policy.allocations, 1u);
  for (const char each : memory[1]) {
    ASSERT_EQ(each, 7) << "nothing is written to a buffer that is too small";
  }
}

TEST(StackSwap, BuffersGrowAndAreReused) {
  world w;
  w.spawn([&] {
    for (int i = 0; i < 100; ++i) {
      w.yield();  // the same depth: no allocation but the first
    }
  });
  w.spawn([&] {
    for (int i = 0; i < 100; ++i) {
      w.yield();
    }
  });
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_EQ(w.policy.allocations, 2u);
}

TEST(StackSwap, PolicyOfThreeFunctions) {
  world unused;
  struct state {
    std::deque<unit> units;
    std::deque<pirn::swap_thread*> ready;
    int allocated = 0;
  } s;
  const pirn::swap_callbacks callbacks{.next_one = [](void* user) -> pirn::swap_thread* {
                                         auto& of = *static_cast<state*>(user);
                                         if (of.ready.empty()) {
                                           return nullptr;
                                         }
                                         pirn::swap_thread* const first = of.ready.front();
                                         of.ready.pop_front();
                                         return first;
                                       },
                                       .allocate_buffer =
                                           [](void* user, std::size_t size) {
                                             ++static_cast<state*>(user)->allocated;
                                             return std::malloc(size);
                                           },
                                       .free_buffer =
                                           [](void* user, void* buffer, std::size_t) {
                                             --static_cast<state*>(user)->allocated;
                                             std::free(buffer);
                                           },
                                       .user = &s};
  pirn::stack_swap<const pirn::swap_callbacks> swap(callbacks);
  int steps = 0;
  for (int i = 0; i < 3; ++i) {
    unit& who = s.units.emplace_back();
    who.work = [&] {
      for (int k = 0; k < 3; ++k) {
        ++steps;
        s.ready.push_back(swap.current());
        EXPECT_EQ(swap.block(), swap_error::none);
      }
    };
    who.assign<&unit::run>(who);
    s.ready.push_back(&who);
  }
  EXPECT_EQ(swap.run(), swap_error::none);
  EXPECT_EQ(steps, 9);
  EXPECT_EQ(s.allocated, 0);
}

// ---- exceptions -----------------------------------------------------------------------------------------------------

TEST(StackSwap, ExceptionsInside) {
  world w(scheduler::order::any);
  int caught = 0;
  for (int i = 0; i < 50; ++i) {
    w.spawn([&w, &caught, i] {
      for (int k = 0; k < 5; ++k) {
        try {
          w.yield();
          throw i * 10 + k;
        } catch (const int value) {
          w.yield();  // in flight meanwhile, beside those of the others
          EXPECT_EQ(value, i * 10 + k);
          try {
            std::rethrow_exception(std::current_exception());
          } catch (const int again) {
            w.yield();
            EXPECT_EQ(again, value);
            ++caught;
          }
        }
        EXPECT_EQ(std::current_exception(), nullptr);
      }
    });
  }
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_EQ(caught, 250);
}

TEST(StackSwap, UncaughtExceptionsAreEachOnesOwn) {
  world w;
  struct blocks_in_destructor {
    world& w;
    ~blocks_in_destructor() {
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      w.yield();
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  w.spawn([&] {
    try {
      const blocks_in_destructor guard{w};
      throw 1;
    } catch (const int) {
    }
  });
  w.spawn([&] {
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    w.yield();
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  });
  EXPECT_EQ(w.swap.run(), swap_error::none);
}

TEST(StackSwap, WhatLeavesABodyComesOutOfRun) {
  world w;
  std::string said;
  w.spawn([&] {
    w.yield();
    said += "a";
    throw std::runtime_error("of a");
  });
  w.spawn([&] {
    w.yield();
    w.yield();
    said += "b";
  });
  w.spawn([] { throw std::runtime_error("of c, which never blocked"); });
  for (const char* const what : {"of c, which never blocked", "of a"}) {
    try {
      w.swap.run();
      ADD_FAILURE() << "nothing came out";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), what);
    }
  }
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_EQ(said, "ab");
  EXPECT_TRUE(w.units[0].done() && w.units[1].done() && w.units[2].done());
}

TEST(StackSwap, RunInsideACatchBlock) {
  world w;
  for (int i = 0; i < 3; ++i) {
    w.spawn([&w, i] {
      EXPECT_EQ(std::current_exception(), nullptr);
      try {
        throw i;
      } catch (const int) {
        w.yield();
        EXPECT_NE(std::current_exception(), nullptr);
      }
    });
  }
  try {
    throw std::string("outer");
  } catch (const std::string&) {
    EXPECT_EQ(w.swap.run(), swap_error::none);
    try {
      throw;
    } catch (const std::string& again) {
      EXPECT_EQ(again, "outer");
    }
  }
}

// ---- ends before the end --------------------------------------------------------------------------------------------

TEST(StackSwap, AbortUnwinds) {
  world w;
  int destroyed = 0;
  bool after = false;
  w.spawn([&] {
    const count_destroyed one{destroyed};
    w.yield();
    try {
      const count_destroyed two{destroyed};
      throw 1;
    } catch (const int) {
      const count_destroyed three{destroyed};
      w.swap.abort();
    }
    after = true;
  });
  w.spawn([&] {
    const count_destroyed one{destroyed};
    w.swap.abort();
    after = true;
  });
  w.spawn([&] {
    w.yield();
    w.yield();
    EXPECT_EQ(destroyed, 4);
    EXPECT_EQ(std::current_exception(), nullptr);
  });
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_FALSE(after);
  EXPECT_EQ(destroyed, 4);
}

TEST(StackSwap, CancelUnwindsWhereItIsBlocked) {
  world w;
  int destroyed = 0;
  bool after = false;
  swap_error in_destructor = swap_error::none;
  struct blocks {
    world& w;
    swap_error& result;
    ~blocks() noexcept(false) { result = w.swap.block(); }
  };
  unit& first = w.spawn([&] {
    const count_destroyed one{destroyed};
    const blocks refused{w, in_destructor};
    try {
      throw 1;
    } catch (const int) {
      const count_destroyed two{destroyed};
      static_cast<void>(w.swap.block());  // the queue does not know it now
      after = true;
    }
  });
  unit never_begun;
  w.spawn([&] {
    w.start(never_begun, [&] { after = true; });
    EXPECT_EQ(w.policy.next(), &never_begun);
    w.swap.cancel(never_begun);
    EXPECT_TRUE(never_begun.done());
    w.swap.cancel(first);
    w.swap.cancel(first);  // once is enough
    w.policy.ready(first);
    w.yield();
    EXPECT_TRUE(first.done());
    w.swap.cancel(first);
    EXPECT_EQ(destroyed, 2);
    EXPECT_EQ(std::current_exception(), nullptr);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  });
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_FALSE(after);
  EXPECT_EQ(in_destructor, swap_error::unwinding);
}

TEST(StackSwap, CancelledBetweenTwoRuns) {
  world w;
  int destroyed = 0;
  unit& blocked = w.spawn([&] {
    const count_destroyed one{destroyed};
    static_cast<void>(w.swap.block());
    ADD_FAILURE() << "it was resumed";
  });
  const auto run = [&]() __attribute__((noinline)) { EXPECT_EQ(w.swap.run(), swap_error::none); };
  run();
  EXPECT_FALSE(blocked.done());
  EXPECT_EQ(destroyed, 0);
  w.swap.cancel(blocked);
  w.policy.ready(blocked);
  run();
  EXPECT_TRUE(blocked.done());
  EXPECT_EQ(destroyed, 1);
}

TEST(StackSwap, DiscardDropsFrames) {
  world w;
  int destroyed = 0;
  unit& blocked = w.spawn([&] {
    const count_destroyed one{destroyed};
    static_cast<void>(w.swap.block());
  });
  EXPECT_EQ(w.swap.run(), swap_error::none);
  w.swap.discard(blocked);
  EXPECT_TRUE(blocked.done());
  EXPECT_EQ(destroyed, 0);
}

TEST(StackSwap, CatchAllDoesNotSwallowAnUnwind) {
  world w;
  int destroyed = 0;
  const auto earlier = pirn::forced_unwind::set_reporter([](const char*) noexcept {});
  w.spawn([&] {
    const count_destroyed one{destroyed};
    try {
      w.swap.abort();
    } catch (...) {
    }
    ADD_FAILURE() << "the unwind went on no further";
  });
  EXPECT_EQ(w.swap.run(), swap_error::none);
  pirn::forced_unwind::set_reporter(earlier);
  EXPECT_EQ(destroyed, 1);
}

// ---- where run may be called ----------------------------------------------------------------------------------------

PIRN_NOINLINE swap_error run_below(world& w, std::size_t bytes) {
  auto* const space = static_cast<volatile char*>(alloca(bytes));
  space[0] = 1;
  const swap_error result = w.swap.run();
  space[bytes - 1] = 1;
  return result;
}

TEST(StackSwap, RunAgainWhereItRanOrLessDeep) {
  world w;
  int steps = 0;
  unit& who = w.spawn([&] {
    for (int i = 0; i < 3; ++i) {
      ++steps;
      static_cast<void>(w.swap.block());
    }
  });
  EXPECT_EQ(run_below(w, 1000), swap_error::none);
  EXPECT_EQ(steps, 1);
  w.policy.ready(who);
  EXPECT_EQ(run_below(w, 5000), swap_error::too_deep);
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(run_below(w, 1000), swap_error::none);
  EXPECT_EQ(steps, 2);
  w.policy.ready(who);
  EXPECT_EQ(run_below(w, 100), swap_error::none);
  EXPECT_EQ(steps, 3);
  w.policy.ready(who);
  EXPECT_EQ(run_below(w, 100), swap_error::none);
  EXPECT_TRUE(who.done());
  w.spawn([&] { ++steps; });  // nobody is blocked: anywhere will do
  EXPECT_EQ(run_below(w, 5000), swap_error::none);
  EXPECT_EQ(steps, 4);
}

TEST(StackSwap, RunWhileItRuns) {
  world w;
  w.spawn([&] { EXPECT_EQ(w.swap.run(), swap_error::running); });
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_STRNE(to_string(swap_error::too_deep), to_string(swap_error::running));
}

TEST(StackSwap, CurrentIsWhoRuns) {
  world w;
  EXPECT_EQ(w.swap.current(), nullptr);
  unit& who = w.spawn([&] {
    EXPECT_EQ(w.swap.current(), &w.units[0]);
    w.yield();
    EXPECT_EQ(w.swap.current(), &w.units[0]);
  });
  w.spawn([&] { EXPECT_EQ(w.swap.current(), &w.units[1]); });
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_EQ(w.swap.current(), nullptr);
  EXPECT_TRUE(who.done());
}

// ---- broken rules ---------------------------------------------------------------------------------------------------

TEST(StackSwapDeathTest, BrokenRulesAreNamed) {
  EXPECT_DEATH(
      {
        world w;
        static_cast<void>(w.swap.block());
      },
      "block was called outside of a thread of control");
  EXPECT_DEATH(
      {
        world w;
        w.swap.abort();
      },
      "abort was called outside of a thread of control");
  EXPECT_DEATH(
      {
        world w;
        unit& who = w.spawn([] {});
        w.policy.ready(who);
        w.swap.run();
      },
      "next returned a thread of control that has ended");
  EXPECT_DEATH(
      {
        world w;
        world other;
        unit& who = w.spawn([&] { static_cast<void>(w.swap.block()); });
        w.swap.run();
        other.policy.ready(who);
        other.swap.run();
      },
      "next returned a thread of control of another dispatcher");
  EXPECT_DEATH(
      {
        world w;
        w.spawn([&] { static_cast<void>(w.swap.block()); });
        w.swap.run();
        w.units.clear();
      },
      "a thread of control was destroyed before it ended");
  EXPECT_DEATH(
      {
        world w;
        w.spawn([&] { w.swap.discard(w.units[0]); });
        w.swap.run();
      },
      "discard was called for a thread of control that is not blocked here");
}

TEST(StackSwapDeathTest, BlockOnAnotherStack) {
  EXPECT_DEATH(
      {
        world w;
        // A stack above the native one or below it: neither is where the dispatcher runs.
        w.policy.fail_at = 1;
        w.spawn([&] {
          pirn::coroutine<void()> other([&](auto&) {
            if (w.swap.block() == swap_error::out_of_memory) {
              pirn::detail::swap_misused("another stack: no memory for such an image");
            }
          });
          other.resume();
        });
        w.swap.run();
      },
      "another stack");
}

}  // namespace
