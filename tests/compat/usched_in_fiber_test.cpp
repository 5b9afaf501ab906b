// Dispatchers of usched.h in fibers, which suspend in the middle of them.
#include "usched.h"

#include <csignal>
#include <cstdlib>
#include <deque>
#include <thread>
#include <vector>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
namespace this_fiber = pirn::this_fiber;

struct unit;

/// A dispatcher with its queue.
struct world {
  explicit world(bool next_suspends) : suspends(next_suspends) {
    dispatcher.s_next = [](usched* s) -> ustack* { return reinterpret_cast<world*>(s)->next(); };
    dispatcher.s_alloc = [](usched*, int size) { return std::malloc(static_cast<std::size_t>(size)); };
    dispatcher.s_free = [](usched*, void* buffer, int) { std::free(buffer); };
  }
  ustack* next() {
    if (suspends) {
      this_fiber::yield();
    }
    if (ready.empty()) {
      return nullptr;
    }
    ustack* const first = ready.front();
    ready.pop_front();
    return first;
  }

  usched dispatcher{};  // first: callbacks get its address
  std::deque<ustack*> ready;
  bool suspends;
};

struct unit {
  ustack stack{};
  world* of = nullptr;
  int turns = 0;

  /// Suspends its fiber, and blocks, in turn.
  static void run(void* argument) {
    unit& self = *static_cast<unit*>(argument);
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(ustack_self(), &self.stack);
      static_cast<void>(this_fiber::sleep_for(std::chrono::microseconds(i % 3 == 0 ? 50 : 0)));
      this_fiber::yield();
      EXPECT_EQ(ustack_self(), &self.stack);
      self.of->ready.push_back(&self.stack);
      ustack_block();
      EXPECT_EQ(ustack_self(), &self.stack);
      ++self.turns;
    }
  }
};

void run_some(bool next_suspends) {
  world w(next_suspends);
  std::vector<unit> units(5);
  for (unit& each : units) {
    each.of = &w;
    ustack_init(&each.stack, &w.dispatcher, &unit::run, &each, nullptr, 0);
    w.ready.push_back(&each.stack);
  }
  usched_run(&w.dispatcher);
  for (const unit& each : units) {
    EXPECT_EQ(each.turns, 10);
    std::free(each.stack.u_stack);
  }
}

void run_in_fibers(unsigned workers, bool migratable) {
  rig r(workers);
  std::vector<pirn::fiber> fibers;
  fibers.reserve(8);
  for (int i = 0; i < 8; ++i) {
    fibers.push_back(r.rt.spawn([i] { run_some(i % 2 != 0); }, {.migratable = migratable}));
  }
  join_all(fibers);
}

TEST(usched_in_fiber, each_fiber_of_a_worker_has_its_own) { run_in_fibers(1, false); }

TEST(usched_in_fiber, a_fiber_goes_on_with_its_own_on_another_worker) { run_in_fibers(3, true); }

TEST(usched_in_fiber, a_dispatcher_of_the_thread_is_not_the_fibers) {
  struct outside {
    static void run(void* argument) {
      auto* const self = static_cast<unit*>(argument);
      pirn::runtime_options one;
      one.workers = 1;
      one.calling_thread = true;
      pirn::runtime rt(one);
      rt.run([] { run_some(true); });
      EXPECT_EQ(ustack_self(), &self->stack);
    }
  };
  world w(false);
  unit only;
  ustack_init(&only.stack, &w.dispatcher, &outside::run, &only, nullptr, 0);
  w.ready.push_back(&only.stack);
  usched_run(&w.dispatcher);
}

USCHED_PREEMPTIBLE void compute_until(const volatile int& tick, int value) {
  for (int i = 0; i < 100'000'000 && tick < value; ++i) {
  }
}

// At any instruction a fiber may hold an address of its OS thread's, and the policy may move it to another one.
TEST(usched_in_fiber, a_thread_is_preempted_at_points_only) {
  static volatile int asked;
  asked = 0;
  rig r(1);
  r.rt.run([] {
    if (usched_preempt(SIGRTMIN + 1, 1000) != 0) {
      return;  // under sanitizers
    }
    world here(false);
    here.dispatcher.s_preempt = [](usched*, ustack*) {
      asked = asked + 1;
      return 0;
    };
    unit only;
    ustack_init(
        &only.stack, &here.dispatcher,
        [](void*) {
          compute_until(asked, 1);
          EXPECT_EQ(asked, 0);
          usched_preemption_point();
          EXPECT_EQ(asked, 1);
        },
        nullptr, nullptr, 0);
    here.ready.push_back(&only.stack);
    usched_run(&here.dispatcher);
    usched_preempt(SIGRTMIN + 1, 0);
  });
}

TEST(usched_in_fiber_death, a_fiber_is_no_thread_of_another_ones_dispatcher) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        rig r(1);
        pirn::fiber one = r.rt.spawn([] { run_some(true); });
        pirn::fiber other = r.rt.spawn([] {
          for (int i = 0; i < 5; ++i) {
            this_fiber::yield();
          }
          ustack_self();
        });
        other.join();
      },
      "ustack_self was called outside of a thread");
}

}  // namespace
