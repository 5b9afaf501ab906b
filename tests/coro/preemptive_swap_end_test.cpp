// Swapped tasks that are cancelled, discarded or aborted around a preemption.
#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <vector>

#include "coro/preemptive_swap_support.hpp"
#include "pirn/coro/expert/preemptive_swap.hpp"

namespace {

using namespace preemption_support;

/// One task computes until another has cancelled it, and `then` follows.
template <class Compute, class Then>
void cancel_while_preempted(preemptive_world& w, Compute compute_to, Then then) {
  volatile int cancelled = 0;
  unit& first = w.spawn([&] {
    compute_to(cancelled, 1);
    then();
  });
  w.spawn([&] {
    w.swap.cancel(first);
    EXPECT_FALSE(first.done());
    cancelled = 1;
  });
  w.run();
  EXPECT_TRUE(first.done());
  EXPECT_EQ(std::current_exception(), nullptr);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

/// As `cancel_while_preempted`, where `then` begins with an object in the task's frames; its end destroys that once.
template <class Compute, class Then>
void cancelled_task_destroys_its_frames(preemptive_world& w, Compute compute_to, Then then) {
  int destroyed = 0;
  cancel_while_preempted(w, compute_to, [&] {
    const count_destroyed one{destroyed};
    then();
  });
  EXPECT_EQ(destroyed, 1);
}

TEST(PreemptiveSwap, CancelledTaskUnwindsAtItsNextBlock) {
  NEEDS_PREEMPTION_ANYWHERE();
  preemptive_world w;
  bool computed = false;
  cancelled_task_destroys_its_frames(w, compute_until, [&] {
    EXPECT_EQ(w.swap.current(), &w.units.front());
    computed = true;
    static_cast<void>(w.swap.block());
    ADD_FAILURE() << "it returned from block";
  });
  EXPECT_TRUE(computed);
}

TEST(PreemptiveSwap, CancelledTaskUnwindsAtItsNextSafePoint) {
  NEEDS_PREEMPTION_ANYWHERE();
  preemptive_world w;
  cancelled_task_destroys_its_frames(w, compute_until, [&] {
    w.swap.preemption_point();
    ADD_FAILURE() << "it returned from the safe point";
  });
}

TEST(PreemptiveSwap, CancelledTaskThatCannotThrowRunsOn) {
  NEEDS_PREEMPTION_ANYWHERE();
  preemptive_world w;
  cancelled_task_destroys_its_frames(w, compute_until_noexcept, [&] { w.swap.preemption_point(); });
}

TEST(PreemptiveSwap, CancelledTaskMayReturnThrowOrAbort) {
  NEEDS_PREEMPTION_ANYWHERE();
  bool returned = false;
  preemptive_world one;
  cancel_while_preempted(one, compute_until, [&] { returned = true; });
  EXPECT_TRUE(returned);

  preemptive_world two;
  EXPECT_THROW(cancel_while_preempted(two, compute_until, [] { throw std::runtime_error("of a cancelled task"); }),
               std::runtime_error);
  two.run();

  preemptive_world three;
  int destroyed = 0;
  cancel_while_preempted(three, compute_until, [&] {
    const count_destroyed guard{destroyed};
    three.swap.abort();
  });
  EXPECT_EQ(destroyed, 1);
}

TEST(PreemptiveSwap, CancelledTaskIsPreemptedAgain) {
  NEEDS_PREEMPTION_ANYWHERE();
  preemptive_world w;
  int destroyed = 0;
  volatile int cancelled = 0;
  volatile int let_go = 0;
  unit& first = w.spawn([&] {
    const count_destroyed one{destroyed};
    compute_until(cancelled, 1);
    compute_until(let_go, 1);
    w.swap.preemption_point();
    ADD_FAILURE() << "it returned from the safe point";
  });
  w.spawn([&] {
    w.swap.cancel(first);
    cancelled = 1;
    w.yield();
    w.yield();
    let_go = 1;
  });
  unit& aborts = w.spawn([&] {
    compute_until(cancelled, 1);
    w.swap.abort();
  });
  w.run();
  EXPECT_TRUE(first.done() && aborts.done());
  EXPECT_EQ(destroyed, 1);
}

TEST(PreemptiveSwap, CancelledInACatchBlock) {
  NEEDS_PREEMPTION_ANYWHERE();
  preemptive_world w;
  int destroyed = 0;
  volatile int cancelled = 0;
  unit& first = w.spawn([&] {
    try {
      throw 7;
    } catch (const int value) {
      const count_destroyed one{destroyed};
      compute_until(cancelled, 1);
      EXPECT_EQ(value, 7);
      EXPECT_NE(std::current_exception(), nullptr);
      w.swap.preemption_point();
    }
    ADD_FAILURE() << "it left the catch block";
  });
  w.spawn([&] {
    EXPECT_EQ(std::current_exception(), nullptr);
    w.swap.cancel(first);
    cancelled = 1;
  });
  w.run();
  EXPECT_EQ(destroyed, 1);
}

TEST(PreemptiveSwap, CancelledTaskThatBlocksInADestructorUnwindsLater) {
  NEEDS_PREEMPTION_ANYWHERE();
  struct blocks {
    preemptive_world& w;
    int& blocked;
    ~blocks() {
      w.swap.preemption_point();
      w.yield();
      ++blocked;
    }
  };
  preemptive_world w;
  int blocked = 0;
  int destroyed = 0;
  cancel_while_preempted(w, compute_until, [&] {
    const count_destroyed one{destroyed};
    try {
      const blocks two{w, blocked};
      throw 7;
    } catch (const int value) {
      EXPECT_EQ(value, 7);
      EXPECT_EQ(blocked, 1);
      w.swap.preemption_point();
    }
    ADD_FAILURE() << "it left the catch block";
  });
  EXPECT_EQ(destroyed, 1);
}

TEST(PreemptiveSwap, CancelledTaskThatThePolicyLetsRunOnUnwindsAtTheNextSafePoint) {
  NEEDS_PREEMPTION_ANYWHERE();
  struct runs_on {
    preemptive_world& w;
    ~runs_on() {
      w.policy.willing = false;
      w.swap.preemption_point();
    }
  };
  preemptive_world w;
  cancelled_task_destroys_its_frames(w, compute_until, [&] {
    try {
      const runs_on two{w};
      throw 7;
    } catch (const int value) {
      EXPECT_EQ(value, 7);
      w.swap.preemption_point();
    }
    ADD_FAILURE() << "it left the catch block";
  });
}

TEST(PreemptiveSwap, CancelledTaskIsNotAmongTheReadyOnesAfterASafePoint) {
  NEEDS_PREEMPTION_ANYWHERE();
  preemptive_world w;
  cancelled_task_destroys_its_frames(w, compute_until, [&] {
    w.swap.preemption_point();
    w.yield();
  });
}

TEST(PreemptiveSwap, DispatcherIsDestroyedWhileTasksArePreempted) {
  NEEDS_PREEMPTION_ANYWHERE();
  int destroyed = 0;
  const auto run = [](preemptive_world& w) __attribute__((noinline)) { w.run(); };
  std::vector<bool> done;
  {
    preemptive_world w;
    volatile int end = 0;
    for (int i = 0; i < 4; ++i) {
      w.spawn([&] {
        const count_destroyed one{destroyed};
        compute_until(end, 1);
        w.swap.preemption_point();
        ADD_FAILURE() << "it returned from the safe point";
      });
    }
    w.spawn([&] {
      for (std::size_t i = 0; i < 4; ++i) {
        w.policy.forget(w.units[i]);  // `run` returns, and leaves them preempted
      }
    });
    run(w);
    EXPECT_EQ(destroyed, 0);
    w.swap.discard(w.units[0]);
    w.swap.discard(w.units[1]);
    EXPECT_EQ(destroyed, 0);
    for (std::size_t i = 2; i < 4; ++i) {
      w.swap.cancel(w.units[i]);
      w.policy.ready(w.units[i]);
    }
    end = 1;
    run(w);
    for (std::size_t i = 0; i < 4; ++i) {
      done.push_back(w.units[i].done());
    }
  }
  EXPECT_EQ(destroyed, 2);
  EXPECT_EQ(done, std::vector<bool>(4, true));
}

TEST(PreemptiveSwap, UnwindIsNotPreempted) {
  NEEDS_PREEMPTION_ANYWHERE();
  struct computes {
    preemptive_world& w;
    ~computes() {
      const int before = w.policy.asked;
      compute_for_a_while();
      w.swap.preemption_point();
      EXPECT_EQ(w.policy.asked, before);
    }
  };
  preemptive_world w;
  w.spawn([&] {
    const computes one{w};
    w.swap.abort();
  });
  w.spawn([] {});
  w.run();
}

}  // namespace
