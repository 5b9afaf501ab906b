// Biased mutexes: locks on the worker of the bias, and other parties that end the bias.
#include "pirn/sync/expert/biased_mutex.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include "detail/sandbox.hpp"
#include "fiber/support.hpp"
#include "sync/biased.hpp"
#include "sync/locks.hpp"

namespace {

using namespace pirn_test;
using pirn::biased_mutex;
using pirn::wait_error;

/// Returns the worker that runs the caller.
const void* here() { return pirn::platform::current_worker(); }

/// Biases `m` towards the worker of that index.
void bias(rig& r, biased_mutex& m, int worker = 0) {
  r.rt.spawn([&] { const std::lock_guard guard(m); }, {.worker = worker}).join();
  ASSERT_EQ(m.biased(), biases());
}

TEST(biased_mutex, stays_with_its_worker_though_its_fibers_wait_for_each_other) {
  rig r(1);
  biased_mutex m;
  expect_first_come_first_served(r, m);
  bias(r, m);
}

TEST(biased_mutex, excludes_fibers_and_threads_of_all_kinds) {
  for (const bool with_threads : {false, true}) {
    rig r(3);
    biased_mutex m;
    const int rounds = scaled(1000);
    int inside = 0;
    long counter = 0;  // not atomic: the lock orders it
    const auto body = [&] {
      for (int i = 0; i < rounds; ++i) {
        const std::lock_guard guard(m);
        EXPECT_EQ(++inside, 1);
        ++counter;
        if (i % 64 == 0) {
          pirn::this_fiber::yield();  // with the lock held; a migratable one may move
        }
        --inside;
      }
    };
    std::vector<pirn::fiber> fibers;
    for (int i = 0; i < 9; ++i) {
      fibers.push_back(r.rt.spawn(body, {.worker = i % 3, .migratable = i % 2 == 0}));
    }
    std::vector<std::jthread> threads;
    for (int i = 0; with_threads && i < 2; ++i) {
      threads.emplace_back(body);
    }
    join_all(fibers);
    const long expected = (9L + static_cast<long>(threads.size())) * rounds;
    threads.clear();
    EXPECT_EQ(counter, expected);
    EXPECT_FALSE(m.biased());
  }
}

TEST(biased_mutex, a_migratable_fiber_goes_to_its_worker_and_ends_the_bias) {
  for (const bool taken : {false, true}) {
    rig r(2);
    biased_mutex m;
    const void* home = nullptr;
    r.rt.spawn([&] { home = here(); }, {.worker = 0}).join();
    bias(r, m);
    std::atomic<bool> let_go = false;
    std::atomic<bool> holds = false;
    std::atomic<bool> moved_in = false;
    pirn::fiber holder = r.rt.spawn(
        [&] {
          if (taken) {
            m.lock();
            holds = true;
            EXPECT_TRUE(eventually([&] { return let_go.load(); }));
            EXPECT_FALSE(moved_in);
            m.unlock();
          }
        },
        {.worker = 0});
    ASSERT_TRUE(eventually([&] { return !taken || holds; }));
    pirn::fiber nomad = r.rt.spawn(
        [&] {
          EXPECT_TRUE(pirn::this_fiber::migrate_to(1));
          EXPECT_NE(here(), home);
          m.lock();
          EXPECT_TRUE(taken || here() == home || !biases());  // after a wait the fiber may have moved on
          moved_in = true;
          m.unlock();
        },
        {.migratable = true});
    ASSERT_TRUE(eventually([&] { return !m.biased(); }));
    let_go = true;
    nomad.join();
    holder.join();
    EXPECT_TRUE(moved_in);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  }
}

TEST(biased_mutex, its_owner_may_move_on_and_unlock_elsewhere) {
  rig r(2);
  biased_mutex m;
  long guarded = 0;  // not atomic: the lock orders it
  bias(r, m);
  std::atomic<bool> away = false;
  std::atomic<bool> waits = false;
  pirn::fiber nomad = r.rt.spawn(
      [&] {
        EXPECT_TRUE(pirn::this_fiber::migrate_to(0));
        const std::lock_guard guard(m);
        EXPECT_TRUE(pirn::this_fiber::migrate_to(1));
        ++guarded;
        away = true;
        EXPECT_TRUE(eventually([&] { return waits.load(); }));
        EXPECT_TRUE(pirn::this_fiber::migrate_to(1));
        ++guarded;
      },
      {.migratable = true});
  pirn::fiber at_home = r.rt.spawn(
      [&] {
        EXPECT_TRUE(eventually([&] { return away.load(); }));
        EXPECT_FALSE(m.try_lock());
        EXPECT_EQ(m.lock(clock::now() + 1ms).error(), wait_error::timed_out);
        waits = true;
        m.lock();
        EXPECT_EQ(++guarded, 3);
        pirn::this_fiber::yield();
        m.unlock();
      },
      {.worker = 0});
  nomad.join();
  at_home.join();
  bias(r, m);
}

/// Runs `body` as a stranger that does not move: on a plain thread, or in a fiber pinned to another worker.
template <class Body>
void as_stranger(rig& r, bool fiber, Body body) {
  if (fiber) {
    r.rt.spawn(body, {.worker = 1}).join();
  } else {
    body();
  }
}

TEST(biased_mutex, a_stranger_revokes_the_bias_of_a_free_one_at_once) {
  for (const bool fiber : {false, true}) {
    rig r(2);
    biased_mutex m;
    bias(r, m);
    as_stranger(r, fiber, [&] { EXPECT_TRUE(m.try_lock()); });
    EXPECT_FALSE(m.biased());
    r.rt.spawn([&] { EXPECT_FALSE(m.try_lock()); }, {.worker = 0}).join();
    as_stranger(r, fiber, [&] { m.unlock(); });
    r.rt.spawn([&] { EXPECT_TRUE(m.try_lock()); }, {.worker = 0}).join();
    m.unlock();
  }
}

TEST(biased_mutex, a_stranger_waits_for_the_owner_or_gives_up) {
  for (const bool fiber : {false, true}) {
    rig r(2);
    biased_mutex m;
    std::atomic<bool> holds = false;
    std::atomic<bool> let_go = false;
    pirn::fiber owner = r.rt.spawn(
        [&] {
          const std::lock_guard guard(m);
          holds = true;
          EXPECT_TRUE(eventually([&] { return let_go.load(); }));
        },
        {.worker = 0});
    ASSERT_TRUE(eventually([&] { return holds.load(); }));
    as_stranger(r, fiber, [&] {
      EXPECT_FALSE(m.try_lock());
      EXPECT_EQ(m.lock(clock::now() + 1ms).error(), wait_error::timed_out);
      EXPECT_EQ(m.lock(clock::time_point{}).error(), wait_error::timed_out);
    });
    pirn::fiber behind =
        r.rt.spawn([&] { EXPECT_EQ(m.lock(pirn::platform::never).error(), wait_error::stopped); }, {.worker = 0});
    std::this_thread::sleep_for(1ms);
    behind.request_stop();
    behind.join();
    std::jthread last([&] {
      m.lock();
      EXPECT_TRUE(let_go);
      m.unlock();
    });
    std::this_thread::sleep_for(1ms);
    let_go = true;
    owner.join();
    last.join();
    EXPECT_TRUE(m.lock(clock::time_point{}).has_value());  // free: no need to wait
    m.unlock();
  }
}

TEST(biased_mutex, a_plain_thread_that_is_first_leaves_it_without_a_bias) {
  rig r(1);
  biased_mutex m;
  EXPECT_TRUE(m.try_lock());
  EXPECT_FALSE(m.try_lock());
  m.unlock();
  r.rt.run([&] { const std::scoped_lock both(m); });
  EXPECT_FALSE(m.biased());
}

TEST(biased_mutex, outlives_the_runtime_that_it_is_biased_towards) {
  biased_mutex m;
  {
    rig r(1);
    bias(r, m);
  }
  rig r(2);
  r.rt.spawn([&] { const std::lock_guard guard(m); }, {.migratable = true}).join();
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST(biased_mutex, a_stranger_may_come_at_any_moment) { strangers_come_at_any_moment<biased_mutex>(true); }

#if !defined(PIRN_TSAN)
TEST(biased_mutex, its_worker_may_be_preempted_anywhere) {
  its_worker_is_preempted_anywhere<biased_mutex, 200>("its owner did not tell who waits");
}
#endif

TEST(biased_mutex_death, unlock_of_an_unlocked_one_is_diagnosed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto unlock_twice = [] {
    rig r(1);
    biased_mutex m;
    r.rt.run([&] {
      m.lock();
      m.unlock();
      m.unlock();
    });
  };
  EXPECT_DEATH(unlock_twice(), "called on a biased mutex that is not locked");
  biased_mutex m;
  EXPECT_DEATH(m.unlock(), "called on a biased mutex that is not locked");
}

// Otherwise the mutex would have two owners: its first owner executes no fence.
TEST(biased_mutex_death, is_not_taken_over_where_a_sandbox_refuses_the_fence) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (!pirn::platform::fences_are_asymmetric() || !can_refuse_calls()) {
    GTEST_SKIP() << "no such fences, or no seccomp filters here";
  }
  EXPECT_DEATH(
      {
        rig r(2);
        biased_mutex m;
        bias(r, m);
        refuse_calls({SYS_membarrier}, EPERM);
        r.rt.spawn([&] { const std::lock_guard guard(m); }, {.worker = 1}).join();
        std::_Exit(0);
      },
      "pirn: membarrier failed");
}

}  // namespace
