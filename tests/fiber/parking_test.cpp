// A worker without work sleeps, and wakes in time.
#include <sys/resource.h>

#include <random>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;

struct usage {
  std::chrono::microseconds cpu;
  long switches;
  long preemptions;

  static usage now() {
    rusage raw{};
    EXPECT_EQ(getrusage(RUSAGE_SELF, &raw), 0);
    const auto of = [](const timeval& t) {
      return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
    };
    return {of(raw.ru_utime) + of(raw.ru_stime), raw.ru_nvcsw + raw.ru_nivcsw, raw.ru_nivcsw};
  }
};

/// A sanitizer's own thread may work a little meanwhile.
constexpr auto idle_limit = 3ms * slowdown;
constexpr long idle_switches = 20L * slowdown;

/// One quiet spell is enough: time that the machine's host took from a thread counts as used by it.
void expect_idle_for_a_while() {
  constexpr int spells = 5;
  std::this_thread::sleep_for(20ms);  // settle
  for (int i = 1; i <= spells; ++i) {
    const usage before = usage::now();
    std::this_thread::sleep_for(300ms);
    const usage after = usage::now();
    const bool idle = after.cpu - before.cpu < idle_limit && after.switches - before.switches < idle_switches;
    if (idle || i == spells) {
      EXPECT_LT(after.cpu - before.cpu, idle_limit);
      EXPECT_LT(after.switches - before.switches, idle_switches);
      return;
    }
  }
}

TEST(parking, an_idle_runtime_uses_no_cpu) {
  const rig r(4);
  expect_idle_for_a_while();
}

TEST(parking, fibers_that_wait_use_no_cpu) {
  rig r(2);
  event never_set;
  std::vector<pirn::fiber> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(r.rt.spawn([&, i] {
      if (i % 2 == 0) {
        static_cast<void>(never_set.wait());
      } else {
        static_cast<void>(pirn::this_fiber::sleep_for(1h));
      }
    }));
  }
  expect_idle_for_a_while();
}

TEST(parking, a_runtime_that_has_worked_becomes_idle) {
  rig r(2);
  for (int i = 0; i < 200; ++i) {
    r.rt.spawn([] {
          pirn::this_fiber::yield();
          static_cast<void>(pirn::this_fiber::sleep_for(10us));
        })
        .join();
  }
  expect_idle_for_a_while();
}

TEST(parking, a_sleeping_worker_wakes_for_its_timer) {
  rig r(1);
  r.rt.run([] {
    for (int i = 0; i < 10; ++i) {
      const auto due = clock::now() + 1ms;
      static_cast<void>(pirn::this_fiber::sleep_until(due));
      EXPECT_LT(clock::now() - due, 2s);
    }
  });
}

TEST(parking, an_earlier_timer_from_a_fiber_handed_over_counts) {
  rig r(1);
  pirn::fiber sleeper = r.rt.spawn([] { static_cast<void>(pirn::this_fiber::sleep_for(1h)); });
  std::this_thread::sleep_for(2ms);  // by then its worker has parked
  const auto begin = clock::now();
  r.rt.run([] { static_cast<void>(pirn::this_fiber::sleep_for(1ms)); });
  EXPECT_LT(clock::now() - begin, 30s);
}

/// Lets two fibers of two workers run in turn.
void ping_pong(pirn::runtime& rt, int rounds) {
  event there;
  event back;
  pirn::fiber other = rt.spawn(
      [&] {
        for (int i = 0; i < rounds; ++i) {
          static_cast<void>(there.wait());
          back.signal();
        }
      },
      {.worker = 1});
  rt.spawn(
        [&] {
          for (int i = 0; i < rounds; ++i) {
            there.signal();
            static_cast<void>(back.wait());
          }
        },
        {.worker = 0})
      .join();
}

TEST(parking, a_worker_that_waits_awake_notices_that_its_runtime_ends) {
  for (int i = scaled(200); i > 0; --i) {
    pirn::runtime rt({.workers = 2, .idle_spin = i % 2 == 0 ? 10ms : 0ms});
    ping_pong(rt, 20);
  }
}

TEST(parking, workers_that_answer_each_other_do_not_sleep) {
  if (pirn::platform::available_cpus() < 2) {
    GTEST_SKIP() << "needs two CPUs";
  }
  const auto slept = [](pirn::platform::duration idle_spin) {
    pirn::runtime rt({.workers = 2, .idle_spin = idle_spin});
    ping_pong(rt, 2000);
    return rt.statistics(0).parks + rt.statistics(1).parks;
  };
  EXPECT_GT(slept(0s), 1000u);
  for (int i = 0; i < 20; ++i) {
    const long before = usage::now().preemptions;
    const std::uint64_t count = slept(10ms);
    if (count < 1000 || usage::now().preemptions == before) {
      EXPECT_LT(count, 1000u);
      return;
    }
  }
  GTEST_SKIP() << "others want the CPUs";
}

TEST(parking, no_wake_up_is_lost_while_going_to_sleep) {
  // This thread does not sleep: it spawns the next fiber after gaps around the time in which the worker, whose fiber
  // has just ended, goes to sleep.
  for (const unsigned workers : {1u, 2u}) {
    rig r(workers);
    std::minstd_rand random(workers);
    const int rounds = scaled(60'000);
    std::atomic<int> ended = 0;
    for (int i = 0; i < rounds; ++i) {
      r.rt.spawn([&] { ++ended; }, {.worker = i % static_cast<int>(workers)}).detach();
      for (int spin = 1; ended <= i; ++spin) {
        if (spin % 1000 == 0) {
          std::this_thread::yield();
        }
      }
      for (auto spin = random() % 60; spin > 0; --spin) {
        pirn::platform::relax();
      }
    }
    EXPECT_EQ(ended, rounds);
  }
}

/// An engine without descriptors, whose `poll` does not return while it is held: as if its thread had no CPU.
class held_engine final : public pirn::engine {
 public:
  std::size_t poll(pirn::platform::time_point deadline) noexcept override {
    forget_detached();
    for (in_poll = true; !interrupted.exchange(false) && pirn::platform::now() < deadline;) {
      std::this_thread::sleep_for(20us);
    }
    while (held) {
      std::this_thread::sleep_for(20us);
    }
    in_poll = false;
    return 0;
  }
  void interrupt_poll() noexcept override { interrupted = true; }

  std::atomic<bool> held = false;
  std::atomic<bool> in_poll = false;
  std::atomic<bool> interrupted = false;

 private:
  bool begin(pirn::readiness&, int, std::error_code&) noexcept override { return false; }
  bool begin_writes(pirn::readiness&, int, std::error_code&) noexcept override { return false; }
  void end(pirn::readiness&, int) noexcept override {}
};

TEST(parking, a_worker_that_waits_awake_takes_what_one_without_a_cpu_was_to_take) {
  std::vector<held_engine*> engines;
  rig r(2, {.make_engine = [&] {
          auto made = std::make_unique<held_engine>();
          engines.push_back(made.get());
          return made;
        }});
  r.rt.run([&] {
    for (int i = 0; i < 20; ++i) {  // the worker of this fiber waits awake in some of them
      static_cast<void>(pirn::this_fiber::sleep_for(50us));
      engines[1]->held = true;
      compute_until([&] { return engines[1]->in_poll.load(); });
      pirn::fiber other = pirn::spawn([] {}, {.worker = 1, .migratable = true});  // worker 1 is to look for work
      other.join();
      engines[1]->held = false;
    }
  });
}

TEST(parking, no_wake_up_is_lost_from_many_threads) {
  rig r(2);
  std::vector<std::jthread> threads;
  std::atomic<int> sum = 0;
  const int rounds = scaled(2000);
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (int i = 0; i < rounds; ++i) {
        r.rt.run([&] { ++sum; });
        for (auto spin = random() % 1000; spin > 0; --spin) {
          pirn::platform::relax();
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(sum, 3 * rounds);
}

}  // namespace
