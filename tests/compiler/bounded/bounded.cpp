// Fibers with bounded stacks, in a program that is compiled with the plugin.
#include "pirn/fiber/expert/bounded.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "pirn/fiber/fiber_local.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/fiber/this_fiber.hpp"
#include "pirn/sync/channel.hpp"
#include "pirn/sync/event.hpp"
#include "pirn/sync/mutex.hpp"
#include "pirn/sync/semaphore.hpp"

namespace {

using namespace std::chrono_literals;

/// Runs the body in a fiber of a runtime with one worker.
template <class F>
void run(F&& body) {
  pirn::runtime runtime({.workers = 1});
  runtime.run(std::forward<F>(body));
}

constexpr unsigned char paint = 0xa5;

/// The plugin's bound for a fiber with this body, and the part of the stack that the fiber used.
struct use {
  std::size_t bound;
  std::size_t used;
};

/// Spawns it on a stack that was painted before, lets `meanwhile` run and measures how far down the paint is gone.
template <class F, class Meanwhile>
use measure(F body, Meanwhile&& meanwhile) {
  const std::size_t bound = pirn_spawn_bounded_needs_the_compiler_plugin(&pirn::detail::bounded_block<F>::entry);
  // The stack that was given back last is given out next.
  const pirn::stack painted = pirn::detail::small_stack_for(bound).value;
  std::memset(painted.limit(), paint, painted.size());
  pirn::small_stacks::give_back(painted);
  pirn::fiber fiber = pirn::spawn_bounded(body);
  meanwhile();
  fiber.join();
  const auto* low = static_cast<const unsigned char*>(painted.limit());
  const auto* const top = static_cast<const unsigned char*>(painted.top());
  while (low != top && *low == paint) {
    ++low;
  }
  return {bound, static_cast<std::size_t>(top - low) - (pirn::arch::root_size - sizeof(void*))};
}

template <class F, class Meanwhile>
void expect_within(const char* what, F body, Meanwhile&& meanwhile) {
  const use found = measure(body, meanwhile);
  std::printf("%s: at most %zu, used %zu\n", what, found.bound, found.used);
  EXPECT_LE(found.used, found.bound) << what;
  EXPECT_GT(found.used, 64u) << what;
}

__attribute__((noinline)) int fill(int seed) noexcept {
  volatile int room[40];
  for (int i = 0; i < 40; ++i) {
    room[i] = seed;
  }
  return room[seed];
}

__attribute__((noinline)) int deeper(int seed, int) noexcept {
  const int got = fill(seed);
  asm volatile("" : : : "memory");
  return got + 1;
}

void let_run() {
  for (int i = 0; i < 8; ++i) {
    pirn::this_fiber::yield();
  }
}

TEST(Bounded, UsesWhatWasProvenToTheByte) {
  run([] {
    const use found = measure([]() noexcept { static_cast<void>(deeper(1, 0)); }, let_run);
    EXPECT_EQ(found.used, found.bound);
  });
}

TEST(Bounded, NeverUsesMoreWhateverItWaitsFor) {
  run([] {
    expect_within("yield", []() noexcept { let_run(); }, let_run);
    pirn::event event;
    expect_within(
        "event", [&event]() noexcept { static_cast<void>(event.wait()); },
        [&] {
          let_run();
          event.set();
        });
    expect_within(
        "deadline",
        []() noexcept {
          pirn::event never;
          static_cast<void>(never.wait(pirn::platform::now() + 1ms));
        },
        [] { static_cast<void>(pirn::this_fiber::sleep_for(5ms)); });
    pirn::mutex mutex;
    expect_within(
        "mutex",
        [&mutex]() noexcept {
          static_cast<void>(mutex.lock());
          mutex.unlock();
        },
        [&] {
          static_cast<void>(mutex.lock());
          let_run();
          mutex.unlock();
          let_run();
        });
    pirn::counting_semaphore permits(0);
    expect_within(
        "semaphore", [&permits]() noexcept { static_cast<void>(permits.acquire()); },
        [&] {
          let_run();
          permits.release();
        });
    pirn::event wakes;
    expect_within("wakes", [&wakes]() noexcept { wakes.set(); }, [&] { static_cast<void>(wakes.wait()); });
    expect_within(
        "printf on the worker's stack",
        []() noexcept {
          pirn::this_fiber::on_worker_stack([]() noexcept { std::printf("%.30f\n", 1.0); });
          pirn::this_fiber::yield();
        },
        let_run);
    // A fiber without a stack yet begins as this one suspends.
    pirn::fiber other;
    expect_within(
        "start another", [&]() noexcept { pirn::this_fiber::yield(); },
        [&] {
          other = pirn::spawn([] { let_run(); });
          let_run();
        });
    other.join();
  });
}

TEST(Bounded, WokenFromAThreadAndFromAnotherWorker) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([] {
    pirn::event from_thread;
    pirn::event from_worker;
    pirn::fiber fiber = pirn::spawn_bounded([&]() noexcept {
      static_cast<void>(from_thread.wait());
      from_worker.set();
    });
    pirn::fiber other = pirn::spawn([&] { static_cast<void>(from_worker.wait()); }, {.worker = 1});
    std::thread thread([&] {
      std::this_thread::sleep_for(2ms);
      from_thread.set();
    });
    fiber.join();
    other.join();
    thread.join();
    int ran = 0;
    pirn::spawn_bounded([&]() noexcept { ran = 1; }, {.worker = 1}).join();
    EXPECT_EQ(ran, 1);
  });
}

TEST(Bounded, HasNameStopAndLocalsElsewhere) {
  static int destroyed;
  destroyed = 0;
  struct counted {
    ~counted() { ++destroyed; }
  };
  static pirn::fiber_local<counted> local;
  run([] {
    char name[32] = {};
    pirn::event never;
    bool stopped = false;
    pirn::fiber fiber = pirn::spawn_bounded(
        [&]() noexcept {
          pirn::this_fiber::on_worker_stack([&]() noexcept {
            std::memcpy(name, pirn::this_fiber::name().data(), 6);
            static_cast<void>(*local);
          });
          stopped = never.wait() == std::unexpected(pirn::wait_error::stopped);
        },
        {.name = "narrow"});
    EXPECT_EQ(fiber.name(), "narrow");
    let_run();
    fiber.request_stop();
    fiber.join();
    EXPECT_STREQ(name, "narrow");
    EXPECT_TRUE(stopped);
  });
  EXPECT_EQ(destroyed, 1);
}

TEST(Bounded, StacksAreUsedAgain) {
  run([] {
    std::uint64_t ran = 0;
    const void* first = nullptr;
    const void* last = nullptr;
    for (int i = 0; i < 1000; ++i) {
      pirn::spawn_bounded([&]() noexcept {
        ++ran;
        last = __builtin_frame_address(0);
      }).join();
      first = first == nullptr ? last : first;
    }
    EXPECT_EQ(ran, 1000u);
    EXPECT_EQ(first, last);
    pirn::spawn_bounded([&]() noexcept { ++ran; }).detach();
    let_run();
    EXPECT_EQ(ran, 1001u);
  });
}

TEST(Bounded, PassesMessagesOn) {
  run([] {
    constexpr int fibers = 500;
    std::vector<pirn::event> events(fibers + 1);
    std::vector<pirn::fiber> all;
    for (int i = 0; i < fibers; ++i) {
      all.push_back(pirn::spawn_bounded([&events, i]() noexcept {
        static_cast<void>(events[static_cast<std::size_t>(i)].wait());
        events[static_cast<std::size_t>(i) + 1].set();
      }));
    }
    events[0].set();
    EXPECT_TRUE(events[fibers].wait());
    for (pirn::fiber& each : all) {
      each.join();
    }
  });
}

TEST(Bounded, RefusesOptionsThatItCannotHave) {
  run([] {
    const auto body = []() noexcept {};
    const auto invalid = std::make_error_code(std::errc::invalid_argument);
    EXPECT_EQ(pirn::try_spawn_bounded(body, {.migratable = true}).error(), invalid);
    EXPECT_EQ(pirn::try_spawn_bounded(body, {.worker = pirn::spawn_options::any_worker}).error(), invalid);
    EXPECT_EQ(pirn::try_spawn_bounded(body, {.stack_size = 4096}).error(), invalid);
    EXPECT_EQ(pirn::try_spawn_bounded(body, {.worker = 7}).error(), invalid);
  });
}

TEST(BoundedDeathTest, CanaryIsCheckedAtEachSuspension) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run([] {
                 pirn::spawn_bounded(
                     []() noexcept {
                       const pirn::detail::worker* const w = pirn::detail::current_worker();
                       const pirn::stack& mine = pirn::detail::running_fiber(w)->memory;
                       *(static_cast<char*>(mine.limit()) - 1) ^= 1;
                       pirn::this_fiber::yield();
                     },
                     {.name = "narrow"})
                     .join();
               }),
               "pirn: fiber [0-9]+ \"narrow\" has left its stack at 0x[0-9a-f]+, of [0-9]+ bytes");
  EXPECT_DEATH(run([] {
                 pirn::spawn_bounded([]() noexcept {
                   const pirn::detail::worker* const w = pirn::detail::current_worker();
                   const pirn::stack& mine = pirn::detail::running_fiber(w)->memory;
                   *(static_cast<char*>(mine.limit()) - 8) ^= 1;
                 }).join();
               }),
               "has left its stack");
}

TEST(BoundedDeathTest, DoesNotSuspendOnTheWorkersStack) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run([] {
                 pirn::spawn_bounded([]() noexcept {
                   pirn::this_fiber::on_worker_stack([]() noexcept {
                     pirn::event never;
                     static_cast<void>(never.wait());
                   });
                 }).join();
               }),
               "suspends inside this_fiber::on_worker_stack");
}

TEST(BoundedDeathTest, HandlersOnTheInterruptedStackAreRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::signal(SIGUSR2, [](int) {});
        run([] { pirn::spawn_bounded([]() noexcept { let_run(); }).join(); });
      },
      "handler of signal 12 \\(SIGUSR2\\) has no SA_ONSTACK");
}

// After the death tests, which need a process without bounded fibers.
TEST(BoundedZ, LaterHandlersAreRefusedToo) {
  run([] { pirn::spawn_bounded([]() noexcept { let_run(); }).join(); });
  EXPECT_EQ(std::signal(SIGUSR2, [](int) {}), SIG_ERR);
  EXPECT_EQ(errno, EINVAL);
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  EXPECT_EQ(sigaction(SIGUSR2, &action, nullptr), -1);
  action.sa_flags = SA_ONSTACK;
  EXPECT_EQ(sigaction(SIGUSR2, &action, nullptr), 0);
  EXPECT_NE(std::signal(SIGUSR2, SIG_DFL), SIG_ERR);
}

volatile std::sig_atomic_t caught = 0;

TEST(BoundedZ, SignalsComeOnTheAlternateStack) {
  struct sigaction action = {};
  action.sa_handler = [](int) { caught = caught + 1; };
  action.sa_flags = SA_ONSTACK;
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  run([] {
    expect_within(
        "signal",
        []() noexcept {
          pirn::this_fiber::yield();
          asm volatile("# pirn-stack: 0\n\tsyscall"  // the plugin would know nothing of a function tgkill
                       :
                       : "a"(39)
                       : "rcx", "r11", "memory");
          while (caught < 3) {
            pirn::this_fiber::yield();
          }
        },
        [] {
          for (int i = 0; i < 3; ++i) {
            std::raise(SIGUSR1);
            let_run();
          }
        });
  });
  EXPECT_EQ(caught, 3);
  static_cast<void>(std::signal(SIGUSR1, SIG_DFL));
}

}  // namespace
