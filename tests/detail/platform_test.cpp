// The platform layer: fences, locks, clocks, random numbers, threads, CPUs and futexes.

#include "pirn/detail/platform.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "detail/sandbox.hpp"

namespace {

namespace platform = pirn::platform;
using namespace std::chrono_literals;

// ---- fences -----------------------------------------------------------------------------------------------------

// Two parties each store their turn number and then read the other party's (Dekker 1965). Of a light turn and a heavy
// turn, at least one must see the other. The parties count up, so the numbers that they saw tell afterwards which
// turns met: the light party's first turn that heavy turn `e` did not see must have seen `e`.
TEST(platform, fence_pair_lets_one_of_two_parties_see_the_other) {
#if defined(PIRN_TSAN) || defined(PIRN_ASAN)
  constexpr std::uint32_t turns = 200'000, repeats = 2;
#else
  constexpr std::uint32_t turns = 2'000'000, repeats = 20;
#endif
  std::vector<std::uint32_t> light_saw(turns + 1), heavy_saw;
  heavy_saw.reserve(turns);
  long missed = 0, met = 0;
  for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
    struct {
      alignas(64) platform::atomic<std::uint32_t> light{0};
      alignas(64) platform::atomic<std::uint32_t> heavy{0};
    } turn;
    heavy_saw.assign(1, 0);
    std::thread light([&] {
      for (std::uint32_t n = 1; n <= turns; ++n) {
        turn.light.store(n, platform::memory_order_relaxed);
        platform::light_fence();
        light_saw[n] = turn.heavy.load(platform::memory_order_relaxed);
      }
    });
    for (std::uint32_t e = 1; e < turns && heavy_saw.back() < turns; ++e) {
      turn.heavy.store(e, platform::memory_order_relaxed);
      platform::heavy_fence();
      heavy_saw.push_back(turn.light.load(platform::memory_order_relaxed));
    }
    light.join();
    for (std::uint32_t e = 1; e < heavy_saw.size() && heavy_saw[e] < turns; ++e) {
      missed += light_saw[heavy_saw[e] + 1] < e ? 1 : 0;
      ++met;
    }
  }
  EXPECT_GT(met, 0);
  EXPECT_EQ(missed, 0) << "of " << met << "; fences are " << (platform::fences_are_asymmetric() ? "" : "not ")
                       << "asymmetric";
}

TEST(platform, fences_are_symmetric_where_the_sanitizer_must_follow) {
#if defined(PIRN_TSAN)
  EXPECT_FALSE(platform::fences_are_asymmetric());
#endif
}

// ---- spinlock ---------------------------------------------------------------------------------------------------

TEST(platform_death, only_thread_until_there_is_another) {
#if defined(__GLIBC__) && !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        platform::atomic<int> word{1};
        int expected = 2;
        const bool alone = platform::only_thread() && !word.compare_exchange_strong(expected, 3) && expected == 1 &&
                           word.compare_exchange_weak(expected, 3) && word.exchange(4) == 3 && word.load() == 4;
        std::thread([] {}).join();
        std::exit(alone && !platform::only_thread() && word.exchange(5) == 4 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
#endif
}

TEST(platform, spinlock_excludes) {
  constexpr int threads = 4, rounds = 20'000;
  platform::spinlock lock;
  long count = 0;
  std::vector<std::thread> workers;
  workers.reserve(threads);
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        const platform::spin_guard guard(lock);
        ++count;
      }
    });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  EXPECT_EQ(count, long{threads} * rounds);
}

TEST(platform, spinlock_can_be_tried) {
  platform::spinlock lock;
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

// ---- clocks and random numbers ----------------------------------------------------------------------------------

TEST(platform, clock_is_steady_and_shared_with_the_standard_library) {
  const auto before = std::chrono::steady_clock::now();
  const auto now = platform::now();
  const auto after = std::chrono::steady_clock::now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, after);
  EXPECT_GT(platform::never, now + std::chrono::hours(1));
}

TEST(platform, seeds_differ) {
  std::set<std::uint64_t> seeds;
  for (int i = 0; i < 100; ++i) {
    seeds.insert(platform::random_seed());
  }
  EXPECT_EQ(seeds.size(), 100U);
}

// The first numbers of SplitMix64 from seed 1234567, as its authors' reference program prints them.
TEST(platform, random_is_splitmix64) {
  platform::random numbers(1234567);
  EXPECT_EQ(numbers.next(), 6457827717110365317U);
  EXPECT_EQ(numbers.next(), 3203168211198807973U);
  EXPECT_EQ(numbers.next(), 9817491932198370423U);
}

// ---- threads ----------------------------------------------------------------------------------------------------

struct start_record {
  platform::atomic<int> ran{0};
  int id = 0;
  char name[16] = {};
};

void note_start(void* raw) {
  auto& record = *static_cast<start_record*>(raw);
  record.id = platform::thread_id();
  pthread_getname_np(pthread_self(), record.name, sizeof record.name);
  record.ran.store(1, platform::memory_order_release);
}

TEST(platform, thread_runs_its_entry_on_another_thread) {
  start_record record;
  platform::thread thread;
  ASSERT_FALSE(thread.start(&note_start, &record, "pirn-test"));
  thread.join();
  EXPECT_EQ(record.ran.load(), 1);
  EXPECT_NE(record.id, platform::thread_id());
}

#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)  // which reserve more address space than any limit

// Exits with 0 when a start failed for the right reason.
[[noreturn]] void start_threads_without_address_space() {
  const rlimit limit{64 << 20, 64 << 20};
  setrlimit(RLIMIT_AS, &limit);
  std::error_code error;
  std::array<platform::thread, 64> threads;
  for (platform::thread& thread : threads) {
    error = thread.start([](void*) { std::this_thread::sleep_for(1h); }, nullptr, "pirn-test");
    if (error) {
      break;
    }
  }
  _exit(error == std::errc::resource_unavailable_try_again ? 0 : 1);
}

// In a child process, since the limit stays.
TEST(platform_death, thread_that_cannot_be_started_says_why) {
  EXPECT_EXIT(start_threads_without_address_space(), testing::ExitedWithCode(0), "");
}

#endif

TEST(platform, available_cpus_are_those_that_the_kernel_says) {
  cpu_set_t own;
  ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0) << "more than 1024 CPUs";
  EXPECT_EQ(platform::available_cpus(), static_cast<unsigned>(CPU_COUNT(&own)));
  unsigned index = 0;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &own)) {
      EXPECT_EQ(platform::available_cpu(index++), cpu);
    }
  }
  EXPECT_EQ(platform::available_cpu(index), std::nullopt);
}

// A kernel with more CPUs than fit the mask of the call returns EINVAL.
TEST(platform_death, a_kernel_that_does_not_tell_its_cpus_counts_as_one) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (!pirn_test::can_refuse_calls()) {
    GTEST_SKIP() << "no seccomp filters here";
  }
  for (const int error : {EINVAL, EPERM, ENOSYS}) {
    EXPECT_EXIT(
        {
          pirn_test::refuse_calls({SYS_sched_getaffinity}, error);
          std::_Exit(platform::available_cpus() == 1 && !platform::available_cpu(0) ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
  }
}

TEST(platform, thread_is_pinned_or_says_why_not) {
  platform::atomic<std::uint32_t> release{0};
  platform::thread thread;
  ASSERT_FALSE(thread.start(
      [](void* raw) {
        auto& word = *static_cast<platform::atomic<std::uint32_t>*>(raw);
        while (word.load(platform::memory_order_acquire) == 0) {
          platform::futex_wait(word, 0);
        }
      },
      &release, "pirn-test"));
  cpu_set_t own;
  ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
  unsigned allowed = 0;
  while (!CPU_ISSET(allowed, &own)) {
    ++allowed;
  }
  EXPECT_FALSE(thread.pin(allowed));
  cpu_set_t seen;
  ASSERT_EQ(pthread_getaffinity_np(thread.handle(), sizeof seen, &seen), 0);
  EXPECT_EQ(CPU_COUNT(&seen), 1);
  EXPECT_TRUE(CPU_ISSET(allowed, &seen));
  EXPECT_TRUE(thread.pin(CPU_SETSIZE - 1)) << "a processor that is not there";
  EXPECT_TRUE(thread.pin(1U << 30));
  release.store(1, platform::memory_order_release);
  platform::futex_wake(&release, 1);
  thread.join();
}

TEST(platform, some_cpu_is_available) {
  EXPECT_GE(platform::available_cpus(), 1U);
  EXPECT_GE(std::thread::hardware_concurrency(), platform::available_cpus());
}

// ---- parking ----------------------------------------------------------------------------------------------------

TEST(platform, futex_wait_returns_at_once_for_another_value) {
  const platform::atomic<std::uint32_t> word{5};
  EXPECT_TRUE(platform::futex_wait(word, 4));
}

TEST(platform, futex_wait_ends_at_its_deadline) {
  const platform::atomic<std::uint32_t> word{5};
  const auto deadline = platform::now() + 20ms;
  while (platform::futex_wait(word, 5, deadline)) {  // it may return without a reason
    ASSERT_LT(platform::now(), deadline + 10s);
  }
  EXPECT_GE(platform::now(), deadline);
}

TEST(platform, futex_wait_does_not_wait_for_a_deadline_that_has_passed) {
  const platform::atomic<std::uint32_t> word{5};
  EXPECT_FALSE(platform::futex_wait(word, 5, platform::now() - 1s));
  EXPECT_FALSE(platform::futex_wait(word, 5, platform::time_point{}));
  EXPECT_FALSE(platform::futex_wait(word, 5, platform::time_point::min()));
}

TEST(platform, futex_wake_wakes_a_waiter) {
  platform::atomic<std::uint32_t> word{0};
  platform::atomic<int> waiting{0};
  std::thread waiter([&] {
    waiting.store(1, platform::memory_order_release);
    while (word.load(platform::memory_order_acquire) == 0) {
      platform::futex_wait(word, 0);
    }
  });
  while (waiting.load(platform::memory_order_acquire) == 0) {
    platform::yield_thread();
  }
  std::this_thread::sleep_for(5ms);
  word.store(1, platform::memory_order_release);
  platform::futex_wake(&word, 1);
  waiter.join();
}

// ---- the current worker -----------------------------------------------------------------------------------------

TEST(platform, current_worker_is_what_this_thread_set) {
  int mine = 0, others = 0;
  EXPECT_EQ(platform::current_worker(), nullptr);
  platform::set_current_worker(&mine);
  std::thread([&] {
    EXPECT_EQ(platform::current_worker(), nullptr);
    platform::set_current_worker(&others);
    EXPECT_EQ(platform::current_worker(), &others);
  }).join();
  EXPECT_EQ(platform::current_worker(), &mine);
  EXPECT_EQ(platform::current_worker_out_of_line(), &mine);
  platform::set_current_worker(nullptr);
}

TEST(platform, current_worker_is_read_anew_each_time) {
  int first = 0, second = 0;
  int wrong = 0;
  for (int i = 0; i < 1000; ++i) {
    platform::set_current_worker(&first);
    wrong += platform::current_worker() == &first ? 0 : 1;
    platform::set_current_worker(&second);
    wrong += platform::current_worker() == &second ? 0 : 1;
    wrong += platform::current_worker_out_of_line() == &second ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
  platform::set_current_worker(nullptr);
}

}  // namespace
