// Swapped tasks that take turns on one native stack: exceptions, ends before the end, and broken rules.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>

#include "coro/stack_swap_support.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/expert/stack_swap.hpp"
#include "pirn/stack/stack.hpp"

namespace {

using pirn::swap_error;
using swap_support::scheduler;
using swap_support::unit;
using swap_support::world;

struct count_destroyed {
  int& count;
  ~count_destroyed() { ++count; }
};

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
          w.yield();  // in flight meanwhile, besides those of the others
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
      static_cast<void>(w.swap.block());  // the queue does not contain it now
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

// ---- broken rules ---------------------------------------------------------------------------------------------------

TEST(StackSwapDeathTest, BrokenRulesAreNamed) {
  EXPECT_DEATH(
      {
        world w;
        static_cast<void>(w.swap.block());
      },
      "block was called outside of a swapped task");
  EXPECT_DEATH(
      {
        world w;
        w.swap.abort();
      },
      "abort was called outside of a swapped task");
  EXPECT_DEATH(
      {
        world w;
        unit& who = w.spawn([] {});
        w.policy.ready(who);
        w.swap.run();
      },
      "next returned a swapped task that has ended");
  EXPECT_DEATH(
      {
        world w;
        world other;
        unit& who = w.spawn([&] { static_cast<void>(w.swap.block()); });
        w.swap.run();
        other.policy.ready(who);
        other.swap.run();
      },
      "next returned a swapped task of another dispatcher");
  EXPECT_DEATH(
      {
        world w;
        w.spawn([&] { static_cast<void>(w.swap.block()); });
        w.swap.run();
        w.units.clear();
      },
      "a swapped task was destroyed before it ended");
  EXPECT_DEATH(
      {
        world w;
        w.spawn([&] { w.swap.discard(w.units[0]); });
        w.swap.run();
      },
      "discard was called for a swapped task that is not blocked here");
}

void run_and_block_in(pirn::stack other) {
  world w;
  w.spawn([&] {
    pirn::coroutine<void()> inner(other, [&](auto&) { w.yield(); });
    inner.resume();
  });
  w.swap.run();
}

TEST(StackSwapDeathTest, BlockOnAnotherStack) {
  constexpr std::size_t size = 1 << 20;
  // The lower half is a coroutine's stack, the upper half a native stack: an image may be as large as the native stack.
  auto* const low =
      static_cast<char*>(mmap(nullptr, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(low, MAP_FAILED);
  static pirn::stack other;
  other = pirn::stack(low, low + size);
  const auto run = [](void*) -> void* {
    run_and_block_in(other);
    return nullptr;
  };
  EXPECT_DEATH(run_and_block_in(other), "block was called on another stack");
  EXPECT_DEATH(
      {
        pthread_attr_t upper;
        pthread_t native;
        pthread_attr_init(&upper);
        pthread_attr_setstack(&upper, low + size, size);
        if (pthread_create(&native, &upper, run, nullptr) == 0) {
          pthread_join(native, nullptr);
        }
      },
      "block was called on another stack");
  munmap(low, 2 * size);
}

}  // namespace
