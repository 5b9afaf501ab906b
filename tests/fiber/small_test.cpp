// Fibers on small stacks that are checked: what runs on them, and how an overflow is found.
#include "pirn/fiber/expert/small.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "fiber/support.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"

#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)

namespace {
std::atomic<int> allocations_left = -1;  // negative: any number
}  // namespace

// NOLINTBEGIN(misc-new-delete-overloads): the others call these
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const memory = allocations_left == 0 ? nullptr : std::malloc(size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  allocations_left -= allocations_left > 0 ? 1 : 0;
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND(misc-new-delete-overloads)

namespace {

using namespace pirn_test;
namespace this_fiber = pirn::this_fiber;

// Frames are larger without optimization.
#if defined(__OPTIMIZE__)
constexpr std::size_t enough = pirn::default_small_stack_size;
#else
constexpr std::size_t enough = 8 << 10;
#endif

/// Writes `bytes` bytes below the caller's frame.
PIRN_NOINLINE void use_stack(std::size_t bytes) {
  auto* const below = static_cast<volatile char*>(__builtin_alloca(bytes));
  for (std::size_t i = 0; i < bytes; ++i) {
    below[i] = 1;
  }
}

pirn::stack stack_of_this_fiber() { return pirn::detail::running_fiber(pirn::detail::current_worker())->memory; }
std::size_t size_of(const pirn::stack& memory) {
  return static_cast<std::size_t>(static_cast<char*>(memory.top()) - pirn::small_stacks::end_of_band(memory));
}

TEST(SmallFiber, RunsAndEnds) {
  on_one_worker([] {
    int ran = 0;
    std::size_t size = 0;
    pirn::spawn_small(
        [&] {
          size = size_of(stack_of_this_fiber());
          ++ran;
        },
        {.stack_size = enough})
        .join();
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(size, enough);
  });
}

TEST(SmallFiber, TwoKiBAreTheDefault) {
  on_one_worker([] {
    std::size_t size = 0;
    if (enough == pirn::default_small_stack_size) {
      pirn::spawn_small([&] { size = size_of(stack_of_this_fiber()); }).join();
      EXPECT_EQ(size, 2048u);
    }
  });
}

TEST(SmallFiber, WaitsSleepsYieldsAndSpawns) {
  on_one_worker([] {
    pirn::wait_queue gate;
    int waiting = 0;
    int ended = 0;
    std::vector<pirn::fiber> all;
    all.reserve(100);
    for (int i = 0; i < 100; ++i) {
      all.push_back(pirn::spawn_small(
          [&] {
            gate.lock();
            ++waiting;
            EXPECT_EQ(gate.wait({.what = "the gate"}), pirn::wake_reason::notified);
            this_fiber::yield();
            EXPECT_TRUE(this_fiber::sleep_for(1ms).has_value());
            int inner = 0;
            pirn::spawn_small([&] { inner = 1; }, {.stack_size = enough}).join();
            ended += inner;
          },
          {.stack_size = 2 * enough}));
    }
    while (waiting < 100) {
      this_fiber::yield();
    }
    gate.notify_all();
    for (pirn::fiber& each : all) {
      each.join();
    }
    EXPECT_EQ(ended, 100);
  });
}

TEST(SmallFiber, SuspensionsOfOthersStayFast) {
  on_one_worker([] {
    const auto* const w = pirn::detail::current_worker();
    const auto* const before = w->suspend_slow_mask;
    bool forced = false;
    pirn::fiber small = pirn::spawn_small(
        [&] {
          forced = w->suspend_slow_mask->any();
          this_fiber::yield();
          forced = forced && w->suspend_slow_mask->any();
        },
        {.stack_size = enough});
    for (int i = 0; i < 3; ++i) {
      this_fiber::yield();
      EXPECT_EQ(w->suspend_slow_mask, before);
    }
    small.join();
    EXPECT_TRUE(forced);
    EXPECT_EQ(w->suspend_slow_mask, before);
  });
}

TEST(SmallFiber, HasANameAndAStopToken) {
  on_one_worker([] {
    pirn::stop_source source;
    bool stopped = false;
    pirn::fiber one = pirn::spawn_small([&] { stopped = !this_fiber::sleep_for(1h).has_value(); },
                                        {.name = "small", .stack_size = enough, .stop = source.get_token()});
    this_fiber::yield();
    EXPECT_EQ(one.name(), "small");
    source.request_stop();
    one.join();
    EXPECT_TRUE(stopped);
  });
}

TEST(SmallFiber, AnExceptionReachesTheJoiner) {
  on_one_worker([] {
    pirn::fiber one = pirn::spawn_small([] { throw std::runtime_error("small"); }, {.stack_size = 16 << 10});
    EXPECT_THROW(one.join(), std::runtime_error);
  });
}

TEST(SmallFiber, LargeBodiesAreOnTheHeap) {
  on_one_worker([] {
    std::array<int, 100> numbers{};
    numbers[99] = 7;
    auto owned = std::make_unique<int>(5);
    int sum = 0;
    pirn::spawn_small([numbers, owned = std::move(owned), &sum] { sum = numbers[99] + *owned; }, {.stack_size = enough})
        .join();
    EXPECT_EQ(sum, 12);
  });
}

TEST(SmallFiber, OptionsThatItCannotHaveAreRefused) {
  on_one_worker([] {
    for (const pirn::spawn_options& options :
         {pirn::spawn_options{.stack_size = 512}, pirn::spawn_options{.stack_size = 64 << 10},
          pirn::spawn_options{.worker = pirn::spawn_options::any_worker}, pirn::spawn_options{.migratable = true}}) {
      const auto made = pirn::try_spawn_small([] {}, options);
      ASSERT_FALSE(made.has_value());
      EXPECT_EQ(made.error(), std::errc::invalid_argument);
    }
  });
}

TEST(SmallFiber, RunsOnAnotherWorkerAndEndsThere) {
  rig r(2);
  r.rt.run([] {
    std::atomic<int> ran{0};
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 50; ++i) {
      all.push_back(pirn::spawn_small(
          [&] {
            this_fiber::yield();
            ++ran;
          },
          {.stack_size = enough, .worker = i % 2}));
    }
    for (pirn::fiber& each : all) {
      each.join();
    }
    EXPECT_EQ(ran, 50);
  });
}

TEST(SmallFiber, CallsOnTheWorkersStackDoNotCount) {
  on_one_worker([] {
    int done = 0;
    pirn::spawn_small(
        [&] {
          this_fiber::on_worker_stack([&]() noexcept {
            use_stack(40 << 10);
            ++done;
          });
          this_fiber::yield();
          ++done;
        },
        {.stack_size = enough})
        .join();
    EXPECT_EQ(done, 2);
  });
}

TEST(SmallFiber, StacksAreUsedAgain) {
  on_one_worker([] {
    void* first = nullptr;
    void* second = nullptr;
    pirn::spawn_small([&] { first = stack_of_this_fiber().limit(); }, {.stack_size = enough}).join();
    pirn::spawn_small([&] { second = stack_of_this_fiber().limit(); }, {.stack_size = enough}).join();
    EXPECT_EQ(first, second);
  });
}

TEST(SmallFiber, TrimmingLeavesTheirStacks) {
  rig r(1, {.trim_after = 1ms});
  r.rt.run([] {
    pirn::wait_queue gate;
    int ended = 0;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 8; ++i) {
      all.push_back(pirn::spawn_small(
          [&] {
            volatile char kept[5000];
            std::memset(const_cast<char*>(kept), 7, sizeof kept);
            gate.lock();
            (void)gate.wait({.what = "the gate"});
            int sum = 0;
            for (const volatile char& each : kept) {
              sum += each;
            }
            ended += sum == 35'000 ? 1 : 0;
          },
          {.stack_size = 30 << 10}));
    }
    static_cast<void>(this_fiber::sleep_for(50ms));
    gate.notify_all();
    for (pirn::fiber& each : all) {
      each.join();
    }
    EXPECT_EQ(ended, 8);
  });
}

TEST(SmallFiber, ADumpTellsTheSizeThatItMayUse) {
  rig r(1);
  r.rt.run([&] {
    pirn::wait_queue gate;
    pirn::fiber waits = pirn::spawn_small(
        [&] {
          gate.lock();
          (void)gate.wait({.what = "the gate"});
        },
        {.name = "small one", .stack_size = 8192});
    this_fiber::yield();
    std::FILE* const into = std::tmpfile();
    r.rt.dump(fileno(into));
    std::string said(1 << 16, 0);
    EXPECT_EQ(std::fseek(into, 0, SEEK_SET), 0);
    said.resize(std::fread(said.data(), 1, said.size(), into));
    (void)std::fclose(into);
    EXPECT_NE(said.find("the gate"), std::string::npos) << said;
    EXPECT_NE(said.find(", stack 8192 bytes, without a guard\n"), std::string::npos) << said;
    gate.notify_all();
    waits.join();
  });
}

// ---- overflows ------------------------------------------------------------------------------------------------------

// A stack below each of these takes the damage.
void overflow(void (*body)(), std::size_t size = 4096) {
  on_one_worker([body, size] {
    pirn::fiber below = pirn::spawn_small([] { this_fiber::yield(); }, {.stack_size = size});
    pirn::spawn_small([body] { body(); }, {.name = "glutton", .stack_size = size}).join();
    below.join();
  });
}

TEST(SmallFiberDeathTest, AnOverflowIsFoundAtTheNextSuspension) {
  EXPECT_DEATH(overflow([] {
                 use_stack(4090);
                 this_fiber::yield();
                 std::_Exit(0);
               }),
               "stack overflow in fiber .* \"glutton\": its stack has 4096 bytes and no guard.*on_worker_stack");
}

TEST(SmallFiber, ALackOfMemoryForItsNameOrStopTokenIsAnError) {
  on_one_worker([] {
    pirn::stop_source source;
    for (const bool named : {false, true}) {
      pirn::spawn_options options{.stack_size = enough};
      named ? static_cast<void>(options.name = "named") : static_cast<void>(options.stop = source.get_token());
      pirn::spawn_small([] {}, options).join();  // now there are stacks and blocks
      allocations_left = 0;
      const auto made = pirn::try_spawn_small([] {}, options);
      allocations_left = -1;
      ASSERT_FALSE(made.has_value());
      EXPECT_EQ(made.error(), std::errc::not_enough_memory);
      pirn::spawn_small([] {}, options).join();
    }
  });
}

TEST(SmallFiberDeathTest, AnOverflowIsFoundAtTheEnd) {
  EXPECT_DEATH(overflow([] { use_stack(4090); }), "stack overflow in fiber .* \"glutton\"");
}

TEST(SmallFiber, MayWaitInACoroutineOnAnyStack) {
  on_one_worker([] {
    pirn::fiber one = pirn::spawn_small(
        [] {
          // Above and below the fiber's own stack, near it and far away.
          for (std::size_t size = std::size_t{64} << 10; size <= std::size_t{64} << 20; size *= 4) {
            pirn::guarded_pool pools[2];
            for (pirn::guarded_pool& pool : pools) {
              pirn::coroutine<void()> waits(pool, size, [](auto& yield) {
                EXPECT_TRUE(this_fiber::sleep_for(1ms).has_value());
                yield();
                EXPECT_TRUE(this_fiber::sleep_for(1ms).has_value());
              });
              waits.resume();
              EXPECT_TRUE(this_fiber::sleep_for(1ms).has_value());
              waits.resume();
            }
          }
        },
        {.stack_size = std::size_t{16} << 10});
    one.join();
  });
}

TEST(SmallFiberDeathTest, ASuspensionBelowTheStackIsFound) {
  EXPECT_DEATH(overflow([] {
                 // Leaves the band unwritten.
                 auto* const below = static_cast<volatile char*>(__builtin_alloca(4400));
                 below[0] = 0;
                 asm volatile("" : : "r"(below) : "memory");  // else the compiler keeps that byte only
                 this_fiber::yield();
                 std::_Exit(below[0]);
               }),
               "stack overflow .* and suspends [0-9]+ bytes below it");
}

TEST(SmallFiberDeathTest, AnyWordOfTheBandCounts) {
  for (int word = 0; word < 8; ++word) {
    EXPECT_DEATH(on_one_worker([word] {
                   pirn::spawn_small(
                       [word] {
                         char* const end = pirn::small_stacks::end_of_band(stack_of_this_fiber());
                         reinterpret_cast<std::uintptr_t*>(end)[-1 - word] ^= 1;
                       },
                       {.stack_size = 4096})
                       .join();
                 }),
                 "stack overflow in fiber")
        << word;
  }
}

TEST(SmallFiberDeathTest, ASuspensionOnTheWorkersStackIsFound) {
  EXPECT_DEATH(overflow([] { this_fiber::on_worker_stack([]() noexcept { this_fiber::yield(); }); }),
               "\"glutton\" suspends inside this_fiber::on_worker_stack");
}

}  // namespace

#endif
