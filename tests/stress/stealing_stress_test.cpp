// Fibers of every placement at random on several workers: pinned fibers, fibers that any worker may begin, and
// migratable ones. They wait, sleep, move, are stopped and joined, while all are printed now and then.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <stdexcept>

#include "fiber/support.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/sync/mutex.hpp"
#include "stress/support.hpp"

namespace {

using namespace pirn_test;

struct shared {
  explicit shared(unsigned how_many) : workers(how_many) {}

  unsigned workers;
  clock::time_point end = clock::now() + stress_time(3s) / 3;  // for each number of workers
  std::atomic<std::uint64_t> begun = 0;
  std::atomic<std::uint64_t> ended = 0;
  std::atomic<std::uint64_t> thrown = 0;
  std::atomic<std::uint64_t> caught = 0;
  pirn::mutex lock;
  std::uint64_t guarded = 0;
  std::atomic<std::uint64_t> guarded_too = 0;
  event signals;
};

pirn::spawn_options anywhere_of(std::uint64_t chance, unsigned workers) {
  switch (chance % 5) {
    case 0:
      return {};
    case 1:
      return {.worker = static_cast<int>(chance / 5 % workers)};
    case 2:
      return {.name = "stealable", .worker = pirn::spawn_options::any_worker};
    case 3:
      return {.worker = pirn::spawn_options::any_worker};
    default:
      return {.worker = chance / 5 % 2 == 0 ? pirn::spawn_options::any_worker : pirn::spawn_options::current_worker,
              .migratable = true};
  }
}

/// Does one of the things that may suspend a fiber or move it.
void step(shared& s, pirn::platform::random& random) {
  const std::uint64_t chance = random.next() >> 8;
  switch (random.next() % 8) {
    case 0:
      pirn::this_fiber::yield();
      break;
    case 1:
      static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::microseconds(chance % 50)));
      break;
    case 2:
    case 3:
      static_cast<void>(pirn::this_fiber::migrate_to(chance % s.workers));
      break;
    case 4: {
      const std::lock_guard hold(s.lock);
      ++s.guarded;
      if (chance % 4 == 0) {
        pirn::this_fiber::yield();
      }
      ++s.guarded_too;
      break;
    }
    case 5:
      s.signals.signal();
      break;
    case 6:
      static_cast<void>(s.signals.wait({.deadline = clock::now() + std::chrono::microseconds(chance % 100)}));
      break;
    default:
      for (std::uint64_t spin = chance % 200; spin > 0; --spin) {
        pirn::platform::relax();
      }
  }
}

void live(shared& s, std::uint64_t seed, int depth);

void spawn_children(shared& s, pirn::platform::random& random, int depth) {
  std::vector<pirn::fiber> children;
  for (std::uint64_t i = random.next() % 4; i > 0; --i) {
    children.push_back(pirn::spawn([&s, seed = random.next(), depth] { live(s, seed, depth - 1); },
                                   anywhere_of(random.next() >> 8, s.workers)));
  }
  step(s, random);
  for (pirn::fiber& child : children) {
    try {
      if (random.next() % 4 == 0) {
        child.request_stop();
      }
      while (random.next() % 2 == 0 && child.joinable()) {
        static_cast<void>(child.join(clock::now() + std::chrono::microseconds(random.next() % 50)));
      }
      if (child.joinable()) {
        child.join();
      }
    } catch (const std::runtime_error&) {
      ++s.caught;
      static_cast<void>(pirn::this_fiber::migrate_to(random.next() % s.workers));
      pirn::this_fiber::yield();
    }
  }
}

void scope_children(shared& s, pirn::platform::random& random, int depth) {
  const auto deadline =
      random.next() % 2 == 0 ? pirn::platform::never : clock::now() + std::chrono::microseconds(random.next() % 300);
  pirn::scope scope({.deadline = deadline, .worker = pirn::spawn_options::any_worker});
  for (std::uint64_t i = random.next() % 4; i > 0; --i) {
    scope.spawn(
        [&s, seed = random.next(), depth] {
          try {
            live(s, seed, depth - 1);
          } catch (const std::runtime_error&) {
            ++s.caught;
          }
        },
        anywhere_of(random.next() >> 8, s.workers));
  }
  step(s, random);
  scope.join();
}

void live(shared& s, std::uint64_t seed, int depth) {
  ++s.begun;
  struct at_end {
    shared& of;
    ~at_end() { ++of.ended; }
  } const mark{s};
  pirn::platform::random random(seed);
  for (std::uint64_t i = random.next() % 3; i > 0; --i) {
    step(s, random);
  }
  if (depth > 0) {
    if (random.next() % 3 == 0) {
      scope_children(s, random, depth);
    } else {
      spawn_children(s, random, depth);
    }
    if (random.next() % 4 == 0) {
      ++s.thrown;
      throw std::runtime_error("by chance");
    }
  }
}

TEST(stealing_stress, any_placement_at_2_to_4_workers) {
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(nowhere, 0);
  for (const unsigned workers : {2u, 3u, 4u}) {
    rig r(workers);
    shared s(workers);
    const std::uint64_t seed = pirn::platform::random_seed();
    SCOPED_TRACE(seed);
    pirn::platform::random random(seed);
    {
      const std::jthread dumps([&] {
        while (clock::now() < s.end) {
          std::this_thread::sleep_for(50ms);
          r.rt.dump(nowhere);
        }
      });
      while (clock::now() < s.end) {
        std::vector<pirn::fiber> roots;
        for (int i = 0; i < 4; ++i) {
          roots.push_back(
              r.rt.spawn([&s, own = random.next()] { live(s, own, 5); }, anywhere_of(random.next() >> 8, workers)));
        }
        for (pirn::fiber& root : roots) {
          try {
            root.join();
          } catch (const std::runtime_error&) {
            ++s.caught;
          }
        }
      }
    }
    EXPECT_EQ(s.begun, s.ended);
    EXPECT_EQ(s.thrown, s.caught);
    EXPECT_EQ(s.guarded, s.guarded_too);
    EXPECT_GT(s.begun, 100u);
    // A child gives its stack back only after its last switch, and under a sanitizer also all else that it had.
    EXPECT_TRUE(eventually([&] { return r.rt.statistics().live_fibers == 0 && r.pool.statistics().in_use == 0; }));
    std::uint64_t ended = 0;
    std::uint64_t stolen = 0;
    for (std::size_t i = 0; i < workers; ++i) {
      ended += r.rt.statistics(i).ended;
      stolen += r.rt.statistics(i).stolen;
    }
    EXPECT_EQ(ended, s.begun);
    EXPECT_GT(stolen, 0u);
    EXPECT_EQ(r.pool.statistics().in_use, 0u);
  }
  ::close(nowhere);
}

}  // namespace
