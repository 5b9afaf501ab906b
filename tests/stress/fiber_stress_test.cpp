// Fibers come and go at random on several workers and threads: trees of fibers with exceptions, stops, sleeps and
// detached fibers, and whole runtimes.
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>

#include "fiber/support.hpp"
#include "pirn/sync/mutex.hpp"
#include "stress/support.hpp"

namespace {

using namespace pirn_test;

struct tree_counts {
  std::atomic<std::uint64_t> begun = 0;
  std::atomic<std::uint64_t> ended = 0;
  std::atomic<std::uint64_t> thrown = 0;
  std::atomic<std::uint64_t> caught = 0;
};

/// Spawns children here and elsewhere, waits for them in one of several ways, and may throw at the end.
void grow(tree_counts& counts, unsigned seed, int depth) {
  ++counts.begun;
  struct at_end {
    tree_counts& c;
    ~at_end() { ++c.ended; }
  } const mark{counts};
  std::minstd_rand random(seed);
  random.discard(3);
  std::vector<pirn::fiber> children;
  if (depth > 0) {
    for (unsigned i = random() % 4; i > 0; --i) {
      const unsigned next = static_cast<unsigned>(random());
      const int where = random() % 2 == 0 ? pirn::spawn_options::current_worker : pirn::spawn_options::any_worker;
      children.push_back(
          pirn::spawn([&counts, next, depth] { grow(counts, next, depth - 1); }, {.name = "branch", .worker = where}));
    }
  }
  switch (random() % 4) {
    case 0:
      pirn::this_fiber::yield();
      break;
    case 1:
      static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::microseconds(random() % 100)));
      break;
    default:
      break;
  }
  for (pirn::fiber& child : children) {
    try {
      switch (random() % 3) {
        case 0:
          for (;;) {
            const auto ended = child.join(clock::now() + std::chrono::microseconds(random() % 100));
            if (ended) {
              break;
            }
            if (ended.error() == pirn::wait_error::stopped) {  // and so would be all further joins, at once
              child.join();
              break;
            }
          }
          break;
        case 1:
          child.request_stop();
          [[fallthrough]];
        default:
          child.join();
      }
    } catch (const std::runtime_error&) {
      ++counts.caught;
      pirn::this_fiber::yield();
      EXPECT_NE(std::current_exception(), nullptr);
    }
    EXPECT_EQ(std::current_exception(), nullptr);
  }
  if (depth > 0 && random() % 4 == 0) {
    ++counts.thrown;
    throw std::runtime_error("branch");
  }
}

TEST(fiber_stress, trees_of_fibers) {
  rig r(3);
  tree_counts counts;
  const auto end = clock::now() + stress_time(2s);
  std::uint64_t at_root = 0;
  for (unsigned seed = 1; clock::now() < end; ++seed) {
    try {
      r.rt.run([&] { grow(counts, seed, 6); });
    } catch (const std::runtime_error&) {
      ++at_root;
    }
  }
  EXPECT_EQ(counts.begun, counts.ended);
  EXPECT_EQ(counts.thrown, counts.caught + at_root);
  EXPECT_GT(counts.begun, 1000u);
  EXPECT_TRUE(eventually([&] { return r.rt.statistics().live_fibers == 0; }));
  EXPECT_EQ(r.rt.statistics().spawned, counts.begun);
}

TEST(fiber_stress, detached_from_many_threads) {
  std::atomic<std::uint64_t> begun = 0;
  std::atomic<std::uint64_t> ended = 0;
  {
    rig r(2);
    const auto end = clock::now() + stress_time(1s);
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        std::minstd_rand random(t + 1);
        while (clock::now() < end) {
          pirn::fiber f = r.rt.spawn([&, pause = random() % 50] {
            ++begun;
            static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::microseconds(pause)));
            ++ended;
          });
          switch (random() % 3) {
            case 0:
              f.join();
              break;
            case 1:
              f.detach();
              break;
            default:
              f.request_stop();
          }
          while (r.rt.statistics().live_fibers > 2000) {
            std::this_thread::yield();
          }
        }
      });
    }
  }
  EXPECT_EQ(begun, ended);
  EXPECT_GT(ended, 100u);
}

TEST(fiber_stress, runtimes_come_and_go) {
  const auto end = clock::now() + stress_time(1s);
  std::vector<std::jthread> threads;
  std::atomic<int> made = 0;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      while (clock::now() < end) {
        std::atomic<int> left = 20;
        {
          rig r(1 + static_cast<unsigned>(random() % 3));
          for (int i = 0; i < 20; ++i) {
            r.rt.spawn([&left, pause = random() % 100] {
                  static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::microseconds(pause)));
                  pirn::spawn([&left] { --left; }, {.worker = pirn::spawn_options::any_worker}).join();
                })
                .detach();
          }
          while (left > 0 && made % 2 == 0) {  // otherwise they are left to the destructor
            std::this_thread::yield();
          }
        }
        EXPECT_EQ(left, 0);
        ++made;
      }
    });
  }
  threads.clear();
  EXPECT_GT(made, 3);
}

TEST(fiber_stress, sleeps_joins_and_stops_of_thousands) {
  rig r(2);
  std::minstd_rand random(11);  // NOLINT(bugprone-random-generator-seed): the same each time
  std::atomic<int> early = 0;
  const auto end = clock::now() + stress_time(2s);
  std::uint64_t stopped = 0;
  while (clock::now() < end) {
    std::vector<pirn::fiber> all;
    for (int i = 0; i < scaled(2000); ++i) {
      all.push_back(r.rt.spawn([&early, pause = std::chrono::microseconds(random() % 3000)] {
        const auto until = clock::now() + pause;
        if (pirn::this_fiber::sleep_until(until) && clock::now() < until) {
          ++early;
        }
      }));
    }
    for (int i = 0; i < scaled(1000); ++i) {
      all[random() % all.size()].request_stop();
      ++stopped;
    }
    join_all(all);
  }
  EXPECT_EQ(early, 0);
  EXPECT_GT(stopped, 0u);
}

}  // namespace
