// Destructors of thread_local objects (a logger that flushes, a cache that gives back) use pirn while their thread
// ends, before and after pirn's state of the thread is destroyed.
#include <pthread.h>

#include <mutex>
#include <thread>

#include "fiber/support.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/fiber/fiber_local.hpp"

#if defined(PIRN_ASAN)
#include <sanitizer/lsan_interface.h>
#endif

namespace {

using namespace pirn_test;

std::atomic<int> values{0};  // those that exist
std::atomic<int> flushed{0};

struct value {
  value() { ++values; }
  value(const value&) = delete;
  value& operator=(const value&) = delete;
  ~value() { --values; }
  int uses = 0;
};
pirn::fiber_local<value> pending;

/// Waits as a plain thread does, makes variables and runs on a stack.
void use_pirn() {
  event quiet;
  EXPECT_EQ(quiet.wait({.deadline = clock::now() + 1ms}), pirn::wake_reason::timed_out);
  ++pending->uses;
  pirn::generator<int> g([](auto& yield) {
    for (int i = 0; i < 3; ++i) {
      yield(i);
    }
  });
  for (const int n : g) {
    if (n == 1) {
      break;
    }
  }
  ++flushed;
}

struct flusher {
  flusher() = default;
  flusher(const flusher&) = delete;
  flusher& operator=(const flusher&) = delete;
  ~flusher() { use_pirn(); }
};

template <class Body>
void on_threads(int rounds, Body body) {
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back(body);
    }
    for (std::thread& each : threads) {
      each.join();
    }
  }
}

TEST(thread_end, destructors_may_use_what_was_destroyed_and_leave_nothing) {
  flushed = 0;
  constexpr int rounds = 10;
  on_threads(rounds, [] {
    thread_local const flusher early;  // destroyed after pirn's state of the thread
    static_cast<void>(early);
    use_pirn();
    thread_local const flusher late;
    static_cast<void>(late);
  });
  EXPECT_EQ(flushed, 3 * 3 * rounds);
  EXPECT_EQ(values, 0);
}

void use_pirn_late(void*) {
#if defined(PIRN_ASAN)
  const __lsan::ScopedDisabler not_ours;  // glibc loses 32 bytes for each thread_local object that is made so late
#endif
  use_pirn();
}

// C libraries destroy their state of a thread in this way, after all thread_local objects.
TEST(thread_end, so_may_those_of_pthread_keys) {
  flushed = 0;
  static pthread_key_t key;
  ASSERT_EQ(pthread_key_create(&key, &use_pirn_late), 0);
  constexpr int rounds = 10;
  on_threads(rounds, [] { pthread_setspecific(key, &key); });
  on_threads(rounds, [] {
    use_pirn();
    pthread_setspecific(key, &key);
  });
  EXPECT_EQ(flushed, 3 * 3 * rounds);
  EXPECT_EQ(values, 0);
  pthread_key_delete(key);
}

// Two threads that waited by the same words would wake each other.
TEST(thread_end, each_waits_by_itself_all_the_same) {
  std::mutex pairs;
  std::vector<const void*> held;
  on_threads(10, [&] {
    struct looks_late {
      std::mutex* lock = nullptr;
      std::vector<const void*>* into = nullptr;
      ~looks_late() {
        const void* const mine = &pirn::detail::current_agent();
        {
          const std::lock_guard guard(*lock);
          EXPECT_EQ(std::ranges::count(*into, mine), 0);
          into->push_back(mine);
        }
        std::this_thread::sleep_for(5ms);
        const std::lock_guard guard(*lock);
        std::erase(*into, mine);
      }
    };
    thread_local looks_late last;
    last.lock = &pairs;
    last.into = &held;
    static_cast<void>(pirn::detail::current_agent());
  });
  EXPECT_TRUE(held.empty());
}

}  // namespace
