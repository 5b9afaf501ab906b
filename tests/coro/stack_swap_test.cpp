// Swapped tasks that take turns on one native stack: their turns, their images, and the places where run may be called.
#include "pirn/coro/expert/stack_swap.hpp"

#include <alloca.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "coro/stack_swap_support.hpp"

namespace {

using pirn::swap_error;
using swap_support::scheduler;
using swap_support::unit;
using swap_support::world;

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
  EXPECT_EQ(w.swap.statistics().images, 9u);  // no task is the next one itself, and the last round only ends
  EXPECT_GE(w.swap.statistics().bytes, 9 * w.units[0].image_size());
}

/// Blocks at many depths, with frames of many sizes, and finds all of them unchanged.
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
  constexpr unsigned many = 100;  // it has few fibers
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
    EXPECT_EQ(w.swap.statistics().images, 0u);  // each task is the next one itself
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

/// More than two buffers of tasks that block without more on the stack: some 2 KB each without optimization.
constexpr std::size_t small_buffers = 12'000;

/// Blocks with `bytes` more on the stack.
template <class World>
[[gnu::noinline]] void yield_with(World& w, std::size_t bytes) {
  asm volatile("" : "+r"(bytes));  // AddressSanitizer moves what has a constant size elsewhere
  auto* const below = static_cast<volatile char*>(alloca(bytes));
  below[0] = 5;
  below[bytes - 1] = 7;
  w.yield();
  EXPECT_EQ(below[0], 5);
  EXPECT_EQ(below[bytes - 1], 7);
}

TEST(StackSwap, ABufferOfADeepBlockShrinksAfterFourShallowOnes) {
  world w;
  std::vector<std::size_t> held;
  w.spawn([&] {
    yield_with(w, 1 << 20);
    for (int i = 0; i < 6; ++i) {
      w.yield();
      held.push_back(w.policy.held());
    }
  });
  w.spawn([&] {
    for (int i = 0; i < 7; ++i) {
      w.yield();
    }
  });
  EXPECT_EQ(w.swap.run(), swap_error::none);
  ASSERT_EQ(held.size(), 6u);
  EXPECT_GT(held[2], 1u << 20) << "three shallow blocks are not enough";
  EXPECT_LT(held[3], small_buffers) << "two small buffers";
  EXPECT_EQ(w.policy.allocations, 3u) << "and the new one has room enough";
}

TEST(StackSwap, ABufferThatIsNeededNowAndThenStays) {
  world w;
  w.spawn([&] {
    for (int round = 0; round < 10; ++round) {
      yield_with(w, 1 << 16);
      for (int i = 0; i < 3; ++i) {
        w.yield();
      }
    }
  });
  w.spawn([&] {
    for (int i = 0; i < 40; ++i) {
      w.yield();
    }
  });
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_EQ(w.policy.allocations, 2u);
}

TEST(StackSwap, ABufferStaysWhenThereIsNoMemoryForASmallerOne) {
  world w;
  w.policy.fail_at = 3;
  std::size_t held = 0;
  w.spawn([&] {
    yield_with(w, 1 << 16);
    for (int i = 0; i < 7; ++i) {
      w.yield();  // without an error
    }
    held = w.policy.held();
    w.yield();  // the eighth tries again
    EXPECT_LT(w.policy.held(), small_buffers);
  });
  w.spawn([&] {
    for (int i = 0; i < 9; ++i) {
      w.yield();
    }
  });
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_GT(held, 1u << 16);
  EXPECT_EQ(w.policy.allocations, 4u);
}

TEST(StackSwap, LentAndSmallBuffersDoNotShrink) {
  static char memory[1 << 16];
  world w;
  w.start(w.units.emplace_back(memory, sizeof memory), [&] {
    for (int i = 0; i < 9; ++i) {
      w.yield();
    }
  });
  w.spawn([&] {
#if defined(PIRN_ASAN)
    yield_with(w, 500);  // frames are that much larger
#else
    yield_with(w, 2000);
#endif
    for (int i = 0; i < 8; ++i) {
      w.yield();
    }
  });
  EXPECT_EQ(w.swap.run(), swap_error::none);
  EXPECT_EQ(w.policy.allocations, 1u);
}

/// A policy whose buffers stay as large as they once were.
struct keeping_scheduler : scheduler {
  static constexpr pirn::swap_shrink shrink{.ratio = 0};
};
/// A policy that exchanges any buffer of more than two images at once.
struct eager_scheduler : scheduler {
  static constexpr pirn::swap_shrink shrink{.ratio = 2, .after = 1, .keep = 0};
};
template <class Scheduler>
std::size_t held_after_a_deep_block() {
  struct {
    Scheduler policy;
    pirn::stack_swap<Scheduler> swap{policy};
    void yield() {
      policy.ready(*swap.current());
      ASSERT_EQ(swap.block(), swap_error::none);
    }
  } w;
  std::size_t held = 0;
  unit deep;
  deep.work = [&] {
    yield_with(w, 50'000);
    w.yield();
    held = w.policy.held();
  };
  unit other;
  other.work = [&] {
    for (int i = 0; i < 2; ++i) {
      w.yield();
    }
  };
  for (unit* const each : {&deep, &other}) {
    each->template assign<&unit::run>(*each);
    w.policy.ready(*each);
  }
  EXPECT_EQ(w.swap.run(), swap_error::none);
  return held;
}

TEST(StackSwap, APolicyChoosesWhenBuffersShrink) {
  EXPECT_GT(held_after_a_deep_block<keeping_scheduler>(), 50'000u);
  EXPECT_LT(held_after_a_deep_block<eager_scheduler>(), small_buffers);
}

TEST(StackSwap, PolicyOfThreeFunctions) {
  world unused;
  struct state {
    std::deque<unit> units;
    std::deque<pirn::swapped_task*> ready;
    int allocated = 0;
  } s;
  const pirn::swap_callbacks callbacks{.next_one = [](void* user) -> pirn::swapped_task* {
                                         auto& of = *static_cast<state*>(user);
                                         if (of.ready.empty()) {
                                           return nullptr;
                                         }
                                         pirn::swapped_task* const first = of.ready.front();
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
  EXPECT_EQ(run_below(w, 1500), swap_error::none) << "as a frame may be laid out otherwise";
  EXPECT_EQ(steps, 2);
  w.policy.ready(who);
  EXPECT_EQ(run_below(w, 100), swap_error::none);
  EXPECT_EQ(steps, 3);
  w.policy.ready(who);
  EXPECT_EQ(run_below(w, 100), swap_error::none);
  EXPECT_TRUE(who.done());
  w.spawn([&] { ++steps; });  // no task is blocked, so any place will do
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

}  // namespace
