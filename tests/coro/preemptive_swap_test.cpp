// Swapped tasks that compute are preempted by a timer's signal: where the program allows it, with nothing lost.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cfenv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "coro/preemptive_swap_support.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/expert/preemptive_swap.hpp"
#include "pirn/coro/generator.hpp"

namespace {

using namespace preemption_support;

TEST(PreemptiveSwap, TasksThatNeverBlockTakeTurns) {
  NEEDS_PREEMPTION_ANYWHERE();
  constexpr std::uint64_t turns = 20'000'000;
  preemptive_world w;
  std::array<std::uint64_t, 4> results{};
  for (std::size_t i = 0; i < results.size(); ++i) {
    w.spawn([&results, i] {
      errno = static_cast<int>(i) + 1;
      results[i] = compute(i, turns);
      asm volatile("" ::: "memory");  // the compiler knows that compute leaves errno alone
      EXPECT_EQ(errno, static_cast<int>(i) + 1);
    });
  }
  w.run();
  EXPECT_GE(w.policy.asked, 8);
  EXPECT_GE(w.swap.statistics().images, 8u);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i], compute(i, turns));
  }
}

TEST(PreemptiveSwap, TheOtherRunsWhileOneComputesForEver) {
  NEEDS_PREEMPTION_ANYWHERE();
  preemptive_world w;
  volatile int let_go = 0;
  w.spawn([&] { compute_until(let_go, 1); });
  w.spawn([&] { let_go = 1; });
  w.run();
  EXPECT_GE(w.policy.asked, 1);
}

TEST(PreemptiveSwap, TasksShareTheRoundingModeOfTheirThread) {
  NEEDS_PREEMPTION_ANYWHERE();
  preemptive_world w;
  volatile int let_go = 0;
  int seen = -1;
  const int before = std::fegetround();
  std::fesetround(FE_UPWARD);
  w.spawn([&] { compute_until(let_go, 1); });
  w.spawn([&] {
    seen = std::fegetround();
    let_go = 1;
  });
  w.run();
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  EXPECT_EQ(seen, FE_UPWARD);  // of code that was switched to by the handler, which the kernel begins with defaults
  std::fesetround(before);
}

TEST(PreemptiveSwap, SignalMaskAndAlternateStackStayAsTheLastTaskHasLeftThem) {
  NEEDS_PREEMPTION_ANYWHERE();
  preemptive_world w;
  volatile int let_go = 0;
  std::vector<char> memory(std::size_t{64} << 10);
  std::vector<char> other(memory.size());
  stack_t before{};
  const stack_t first = {memory.data(), 0, memory.size()};
  const stack_t second = {other.data(), 0, other.size()};
  ASSERT_EQ(sigaltstack(&first, &before), 0);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  w.spawn([&] { compute_until(let_go, 1); });
  w.spawn([&] {
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, &one, nullptr), 0);
    EXPECT_EQ(sigaltstack(&second, nullptr), 0);
    let_go = 1;
  });
  w.run();
  stack_t now{};
  ASSERT_EQ(sigaltstack(&before, &now), 0);
  EXPECT_EQ(now.ss_sp, second.ss_sp);
  sigset_t mask;
  ASSERT_EQ(pthread_sigmask(SIG_UNBLOCK, &one, &mask), 0);
  EXPECT_EQ(sigismember(&mask, SIGUSR2), 1);
}

TEST(PreemptiveSwap, UnmarkedCodeRunsOnToItsNextSafePoint) {
  if (!delivers_signals) {
    GTEST_SKIP();
  }
  preemptive_world w;
  bool other = false;
  w.spawn([&] {
    // On a full machine the kernel may miss a tick of the timer or two.
    for (int attempts = 0; attempts < 20 && w.policy.asked == 0; ++attempts) {
      compute_unmarked();
      EXPECT_EQ(w.policy.asked, 0);
      w.swap.preemption_point();
    }
    EXPECT_EQ(w.policy.asked, 1);
    EXPECT_TRUE(other);
  });
  w.spawn([&] { other = true; });
  w.run();
}

#if defined(__x86_64__) && !defined(PIRN_ASAN) && !defined(PIRN_TSAN) && !defined(PIRN_VALGRIND)
// The processor traps after each instruction, and the trap's signal takes the part of the timer's.
TEST(PreemptiveSwap, AtEveryInstruction) {
  preempting policy;
  pirn::preemptive_swap swap(policy, {.signal = SIGTRAP, .every = std::chrono::hours(1)});
  std::array<std::uint64_t, 3> results{};
  std::array<unit, results.size()> units;
  for (std::size_t i = 0; i < units.size(); ++i) {
    units[i].work = [&results, i] {
      asm volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tleaq 128(%%rsp), %%rsp" ::
                       : "memory", "cc");
      results[i] = compute(i, 20 + i);
      asm volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\tandq $-257, (%%rsp)\n\tpopfq\n\tleaq 128(%%rsp), %%rsp" ::
                       : "memory", "cc");
    };
    units[i].assign<&unit::run>(units[i]);
    policy.ready(units[i]);
  }
  EXPECT_EQ(swap.run(), swap_error::none);
  signal(SIGTRAP, SIG_DFL);
  EXPECT_GE(policy.asked, 1000);
  EXPECT_GE(swap.statistics().images, 1000u);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i], compute(i, 20 + i));
  }
}
#endif

TEST(PreemptiveSwap, PolicyMayRefuse) {
  NEEDS_PREEMPTION_ANYWHERE();
  preemptive_world w;
  w.policy.willing = false;
  w.spawn([&] { compute_until(w.policy.asked, 3); });
  w.run();
  EXPECT_EQ(w.swap.statistics().images, 0u);
}

TEST(PreemptiveSwap, TaskThatIsItsOwnSuccessorIsNotCopied) {
  NEEDS_PREEMPTION_ANYWHERE();
  preemptive_world w;
  w.spawn([&] { compute_until(w.policy.asked, 3); });
  w.run();
  EXPECT_EQ(w.swap.statistics().images, 0u);
}

TEST(PreemptiveSwap, WithoutAPeriodNoTaskIsPreempted) {
  preemptive_world w(pirn::time_span{});
  w.spawn([&] {
    compute_for_a_while();
    w.swap.preemption_point();
  });
  w.spawn([] {});
  w.run();
  EXPECT_EQ(w.policy.asked, 0);
}

TEST(PreemptiveSwap, NoTimerIsLeft) {
  preemptive_world w;
  w.spawn([] {});
  w.run();
  std::ifstream timers("/proc/self/timers");
  std::string line;
  EXPECT_FALSE(std::getline(timers, line)) << line;
  compute_for_a_while();
  EXPECT_EQ(w.policy.asked, 0);
}

PIRN_NOINLINE void pass_point_far_below(preemptive_world& w) {
  volatile char room[4096];
  room[0] = 0;
  w.swap.preemption_point();
  EXPECT_EQ(room[0], 0);
}

TEST(PreemptiveSwap, SafePointOutsideOfTasksDoesNothing) {
  preemptive_world w;
  pass_point_far_below(w);
  w.spawn([] { compute_unmarked(); });  // a signal that no safe point follows
  w.run();
  pass_point_far_below(w);
  EXPECT_EQ(w.policy.asked, 0);
}

TEST(PreemptiveSwap, MallocIsNeverLeft) {
  if (!delivers_signals) {
    GTEST_SKIP();
  }
  preemptive_world w;
  std::array<unsigned, 3> sums{};
  for (unsigned& sum : sums) {
    w.spawn([&] {
      for (unsigned i = 0; i < 400'000; ++i) {
        auto* const memory = static_cast<char*>(std::malloc(i % 2000 + 1100));
        asm volatile("" : : "r"(memory) : "memory");  // or the compiler leaves it out
        memory[0] = static_cast<char>(i);
        sum += static_cast<unsigned char>(memory[0]);
        std::free(memory);
        if (i % 64 == 0) {
          w.swap.preemption_point();
        }
      }
    });
  }
  w.run();
  EXPECT_GE(w.policy.asked, 1);
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0], sums[2]);
}

/// A policy whose choice of the next task takes long, in a marked function.
struct marked_in_next {
  pirn::swapped_task* next() noexcept {
    compute_for_a_while();
    return rest.next();
  }
  void* allocate(std::size_t size) noexcept { return rest.allocate(size); }
  void free(void* buffer, std::size_t size) noexcept { rest.free(buffer, size); }
  bool preempt(pirn::swapped_task& running) noexcept { return rest.preempt(running); }

  preempting rest;
};

TEST(PreemptiveSwap, PolicyIsNeverLeft) {
  marked_in_next policy;
  pirn::preemptive_swap swap(policy, {.signal = SIGRTMIN + 3, .every = 1ms});
  unit one;
  one.work = [&] {
    policy.rest.ready(one);
    EXPECT_EQ(swap.block(), swap_error::none);
  };
  one.assign<&unit::run>(one);
  policy.rest.ready(one);
  EXPECT_EQ(swap.run(), swap_error::none);
  EXPECT_EQ(policy.rest.asked, 0);
}

// ---- exceptions -----------------------------------------------------------------------------------------------------

TEST(PreemptiveSwap, ExceptionsInFlightStayWithTheirTask) {
  NEEDS_PREEMPTION_ANYWHERE();
  struct computes_in_destructor {
    preemptive_world& w;
    ~computes_in_destructor() {
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      compute_until(w.policy.asked, w.policy.asked + 4);
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  preemptive_world w;
  int caught = 0;
  for (int i = 0; i < 4; ++i) {
    w.spawn([&w, &caught, i] {
      EXPECT_EQ(std::uncaught_exceptions(), 0);
      try {
        const computes_in_destructor one{w};
        throw i;
      } catch (const int value) {
        compute_until(w.policy.asked, w.policy.asked + 4);
        EXPECT_EQ(value, i);
        try {
          std::rethrow_exception(std::current_exception());
        } catch (const int again) {
          EXPECT_EQ(again, i);
          ++caught;
        }
      }
      EXPECT_EQ(std::current_exception(), nullptr);
    });
  }
  w.run();
  EXPECT_EQ(caught, 4);
}

// ---- other stacks and threads ---------------------------------------------------------------------------------------

TEST(PreemptiveSwap, CoroutinesAndGeneratorsAreNotPreempted) {
  NEEDS_PREEMPTION_ANYWHERE();
  preemptive_world w;
  w.spawn([&] {
    pirn::frame_generator<int, 16384> inner = [&](auto& yield) {
      compute_for_a_while();
      w.swap.preemption_point();
      yield(w.policy.asked);
    };
    for (const int asked : inner) {
      EXPECT_EQ(asked, 0);
    }
    pirn::coroutine<void()> outer([&](auto&) {
      compute_for_a_while();
      w.swap.preemption_point();
      EXPECT_EQ(w.policy.asked, 0);
    });
    outer.resume();
    w.swap.preemption_point();
    EXPECT_EQ(w.policy.asked, 1);
  });
  w.spawn([] {});
  w.run();
}

TEST(PreemptiveSwap, EachThreadHasADispatcher) {
  NEEDS_PREEMPTION_ANYWHERE();
  constexpr std::uint64_t turns = 10'000'000;
  const std::uint64_t right = compute(3, turns);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([right] {
      preemptive_world w;
      volatile int let_go = 0;
      std::uint64_t results[2] = {};
      w.spawn([&] { compute_until(let_go, 2); });
      for (std::uint64_t& result : results) {
        w.spawn([&] {
          result = compute(3, turns);
          let_go = let_go + 1;
        });
      }
      w.run();
      EXPECT_EQ(results[0], right);
      EXPECT_EQ(results[1], right);
      EXPECT_GE(w.policy.asked, 1);
    });
  }
  for (std::thread& each : threads) {
    each.join();
  }
}

TEST(PreemptiveSwap, RunsOnTheStackOfAThreadOnly) {
  preemptive_world outer;
  preemptive_world inner;
  outer.spawn([&] {
    EXPECT_EQ(inner.swap.run(), swap_error::nested);
    EXPECT_EQ(outer.swap.run(), swap_error::running);
  });
  outer.run();
  pirn::coroutine<void()> other([&](auto&) { EXPECT_EQ(inner.swap.run(), swap_error::nested); });
  other.resume();
}

TEST(PreemptiveSwap, RefusedSignalIsReported) {
  preempting policy;
  errno = 0;
  EXPECT_EQ(pirn::preemptive_swap(policy, {.signal = SIGKILL, .every = 1ms}).run(), swap_error::no_timer);
  EXPECT_EQ(pirn::preemptive_swap(policy, {.signal = 1000, .every = 1ms}).run(), swap_error::no_timer);
  EXPECT_EQ(errno, 0);
}

}  // namespace
