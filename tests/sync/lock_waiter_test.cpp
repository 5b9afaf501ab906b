// Locks that are handed off, and other callers that try to take them meanwhile.
#include "pirn/sync/detail/lock_waiter.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <shared_mutex>
#include <stdexcept>

#include "pirn/sync/expert/biased_mutex.hpp"
#include "pirn/sync/expert/local.hpp"
#include "pirn/sync/recursive_mutex.hpp"
#include "pirn/sync/semaphore.hpp"
#include "pirn/sync/shared_mutex.hpp"
#include "sync/locks.hpp"

namespace {

using namespace pirn_test;

template <class Mutex>
class lock_waiter : public testing::Test {};
using all_locks = testing::Types<pirn::mutex, pirn::recursive_mutex, pirn::shared_mutex, pirn::biased_mutex,
                                 pirn::local::mutex, pirn::local::recursive_mutex, pirn::local::shared_mutex>;
TYPED_TEST_SUITE(lock_waiter, all_locks);

TYPED_TEST(lock_waiter, keeps_its_turn_and_is_bypassed_four_times_at_most) {
  rig r(1);
  TypeParam m;
  expect_first_come_first_served(r, m);
}

TYPED_TEST(lock_waiter, gets_the_lock_after_a_bypass_once_that_is_free) {
  on_one_worker([] {
    TypeParam m;
    const auto bypassed = [&](auto then) {
      m.lock();
      bool got = false;
      pirn::fiber waits = pirn::spawn([&] {
        got = m.lock(clock::now() + 20ms).has_value();
        if (got) {
          m.unlock();
        }
      });
      pirn::this_fiber::yield();
      m.unlock();
      EXPECT_TRUE(m.try_lock());
      then();
      waits.join();
      return got;
    };
    EXPECT_TRUE(bypassed([&] { m.unlock(); }));
    EXPECT_TRUE(bypassed([&] {
      pirn::this_fiber::yield();
      m.unlock();
    }));
    EXPECT_FALSE(bypassed([&] { static_cast<void>(pirn::this_fiber::sleep_for(30ms)); }));
    m.unlock();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

TYPED_TEST(lock_waiter, is_tried_without_letting_others_run) {
  on_one_worker([] {
    TypeParam m;
    m.lock();
    pirn::fiber tries = pirn::spawn([&] {
      bool ran = false;
      pirn::fiber other = pirn::spawn([&] { ran = true; });
      for (int i = 0; i < 10'000; ++i) {
        EXPECT_FALSE(m.try_lock());
      }
      EXPECT_FALSE(ran);
      other.join();
    });
    tries.join();
    m.unlock();
  });
}

/// A lock that throws when callers that try several locks and back off make no progress.
template <class Mutex>
class patient {
 public:
  void lock() { m_.lock(); }
  bool try_lock() { return counted(m_.try_lock()); }
  void unlock() { m_.unlock(); }
  void lock_shared() { m_.lock_shared(); }
  bool try_lock_shared() { return counted(m_.try_lock_shared()); }
  void unlock_shared() { m_.unlock_shared(); }

 private:
  static bool counted(bool success) {
    failures = success ? 0 : failures + 1;
    if (failures > 100'000) {
      throw std::runtime_error("those who lock several at once back off for ever");
    }
    return success;
  }

  inline static thread_local int failures = 0;

  Mutex m_;
};

TYPED_TEST(lock_waiter, lets_those_who_lock_several_at_once_get_on) {
  for (unsigned seed = 0; seed < static_cast<unsigned>(scaled(300)); ++seed) {
    on_one_worker([seed] {
      std::array<patient<TypeParam>, 4> all;
      std::array<int, 4> inside{};
      std::vector<pirn::fiber> fibers;
      for (unsigned who = 0; who < 2 + seed % 9; ++who) {
        fibers.push_back(pirn::spawn([&, random = std::minstd_rand(1 + who * 1000 + seed)]() mutable {
          const auto pause = [&] {
            if (random() % 2 == 0) {
              pirn::this_fiber::yield();
            }
          };
          std::array<std::size_t, 4> order{0, 1, 2, 3};
          const auto enter = [&](std::ptrdiff_t count) {
            const auto change = [&](int by) {
              std::for_each_n(order.begin(), count, [&](std::size_t k) { EXPECT_EQ(inside[k] += by, by > 0 ? 1 : 0); });
            };
            change(1);
            pause();
            change(-1);
          };
          for (int i = 0; i < 20; ++i) {
            std::shuffle(order.begin(), order.end(), random);
            const auto& [a, b, c, d] = order;
            switch (random() % 4) {
              case 0: {
                const std::lock_guard one(all[a]);
                enter(1);
                break;
              }
              case 1: {
                const std::scoped_lock two(all[a], all[b]);
                enter(2);
                break;
              }
              case 2: {
                const std::scoped_lock three(all[a], all[b], all[c]);
                enter(3);
                break;
              }
              default: {
                const std::scoped_lock four(all[a], all[b], all[c], all[d]);
                enter(4);
                break;
              }
            }
            pause();
            if constexpr (requires(TypeParam m) { m.lock_shared(); }) {
              const std::shared_lock one(all[a]);
              pause();
            }
          }
        }));
      }
      join_all(fibers);
    });
  }
}

template <class Mutex>
class admitted_readers : public testing::Test {};
using shared_locks = testing::Types<pirn::shared_mutex, pirn::local::shared_mutex>;
TYPED_TEST_SUITE(admitted_readers, shared_locks);

TYPED_TEST(admitted_readers, are_revoked_four_times_at_most) {
  on_one_worker([] {
    TypeParam m;
    std::string order;
    std::vector<pirn::fiber> readers;
    m.lock();
    for (const char who : {'a', 'b'}) {
      readers.push_back(pirn::spawn([&, who] {
        const std::shared_lock guard(m);
        order += who;
      }));
    }
    pirn::this_fiber::yield();
    for (int i = 0; i < 4; ++i) {
      m.unlock();
      EXPECT_TRUE(m.try_lock()) << i;
      pirn::this_fiber::yield();
      EXPECT_EQ(order, "");
    }
    m.unlock();
    EXPECT_FALSE(m.try_lock());
    join_all(readers);
    EXPECT_EQ(order.size(), 2u);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

TYPED_TEST(admitted_readers, are_not_revoked_while_anybody_reads) {
  on_one_worker([] {
    TypeParam m;
    m.lock();
    bool read = false;
    pirn::fiber reader = pirn::spawn([&] {
      const std::shared_lock guard(m);
      read = true;
    });
    pirn::fiber writer = pirn::spawn([&] {
      const std::lock_guard guard(m);
      EXPECT_TRUE(read);
    });
    pirn::this_fiber::yield();
    m.unlock();
    EXPECT_TRUE(m.try_lock_shared());  // joins the admitted reader, though a writer waits
    EXPECT_FALSE(m.try_lock());
    pirn::this_fiber::yield();
    EXPECT_TRUE(read);
    EXPECT_FALSE(m.try_lock_shared());
    m.unlock_shared();
    reader.join();
    writer.join();
  });
}

TYPED_TEST(admitted_readers, a_writer_who_has_not_run_loses_the_lock_to_who_tries_to_read) {
  on_one_worker([] {
    TypeParam m;
    std::string order;
    m.lock();
    pirn::fiber writer = pirn::spawn([&] {
      const std::lock_guard guard(m);
      order += 'w';
    });
    pirn::this_fiber::yield();
    m.unlock();
    pirn::fiber impatient = pirn::spawn([&] { EXPECT_FALSE(m.lock_shared(clock::now() + 5ms)); });
    order += m.try_lock_shared() ? 'r' : '-';
    static_cast<void>(pirn::this_fiber::sleep_for(10ms));
    EXPECT_FALSE(m.try_lock_shared());  // the writer waits again
    m.unlock_shared();
    impatient.join();
    writer.join();
    EXPECT_EQ(order, "rw");
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

TYPED_TEST(admitted_readers, those_who_lock_several_at_once_to_read_and_to_write_get_on) {
  for (unsigned seed = 0; seed < static_cast<unsigned>(scaled(300)); ++seed) {
    on_one_worker([seed] {
      std::array<patient<TypeParam>, 4> all;
      std::array<int, 4> writers{};
      std::array<int, 4> readers{};
      const std::size_t locks = 2 + seed % 3;
      const bool in_fixed_roles = seed % 2 == 0;
      std::vector<pirn::fiber> fibers;
      for (unsigned who = 0; who < 2 + seed / 2 % 8; ++who) {
        fibers.push_back(pirn::spawn([&, who, random = std::minstd_rand(1 + who * 1000 + seed)]() mutable {
          const auto pause = [&] {
            if (random() % 2 == 0) {
              pirn::this_fiber::yield();
            }
          };
          const auto enter = [&](std::size_t a, bool writes_a, std::size_t b, bool writes_b) {
            const auto change = [&](std::size_t k, bool writes, int by) {
              (writes ? writers : readers)[k] += by;
              EXPECT_TRUE(writers[k] == 0 || (writers[k] == 1 && readers[k] == 0));
            };
            change(a, writes_a, 1);
            change(b, writes_b, 1);
            pause();
            change(a, writes_a, -1);
            change(b, writes_b, -1);
          };
          for (int i = 0; i < 20; ++i) {
            const std::size_t a = random() % locks;
            const std::size_t b = (a + 1 + random() % (locks - 1)) % locks;
            const unsigned role = in_fixed_roles ? who % 2 * 3 : static_cast<unsigned>(random()) % 4;
            std::unique_lock write_a(all[a], std::defer_lock);
            std::unique_lock write_b(all[b], std::defer_lock);
            std::shared_lock read_a(all[a], std::defer_lock);
            std::shared_lock read_b(all[b], std::defer_lock);
            switch (role) {
              case 0:
                std::lock(read_a, read_b);
                break;
              case 1:
                std::lock(write_a, read_b);
                break;
              case 2:
                std::lock(read_a, write_b);
                break;
              default:
                std::lock(write_a, write_b);
            }
            enter(a, role % 2 != 0, b, role >= 2);
          }
        }));
      }
      join_all(fibers);
    });
  }
}

template <class Mutex>
class lock_waiter_death : public lock_waiter<Mutex> {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};
TYPED_TEST_SUITE(lock_waiter_death, all_locks);

TYPED_TEST(lock_waiter_death, has_nobody_unlock_what_it_has_not_got_yet) {
  const auto unlocks_twice = [] {
    on_one_worker([] {
      TypeParam m;
      m.lock();
      std::vector<pirn::fiber> waiting;
      for (int i = 0; i < 2; ++i) {
        waiting.push_back(pirn::spawn([&] { const std::lock_guard guard(m); }));
      }
      pirn::this_fiber::yield();
      m.unlock();
      m.unlock();
      join_all(waiting);
    });
  };
  EXPECT_DEATH(unlocks_twice(), "called on a .*mutex that");
}

template <class Mutex>
class lock_waiter_of_many : public testing::Test {};
using locks_of_many = testing::Types<pirn::mutex, pirn::recursive_mutex, pirn::shared_mutex, pirn::biased_mutex>;
TYPED_TEST_SUITE(lock_waiter_of_many, locks_of_many);

TYPED_TEST(lock_waiter_of_many, excludes_fibers_and_threads_that_lock_several_at_once) {
  rig r(3);
  std::array<TypeParam, 3> all;
  std::array<long, 3> counted{};  // not atomic: the locks order them
  const int rounds = scaled(20'000);
  const auto body = [&](std::size_t who) {
    for (int i = 0; i < rounds; ++i) {
      const std::size_t a = (who + static_cast<std::size_t>(i)) % 3;
      const std::size_t b = (a + 1 + who % 2) % 3;
      const std::scoped_lock two(all[a], all[b]);
      const long before = counted[a]++;
      ++counted[b];
      if (i % 16 == 0) {
        pirn::this_fiber::yield();
        EXPECT_EQ(counted[a], before + 1);
      }
    }
  };
  std::vector<pirn::fiber> fibers;
  for (std::size_t i = 0; i < 6; ++i) {
    fibers.push_back(r.rt.spawn([&, i] { body(i); }, {.worker = static_cast<int>(i % 3)}));
  }
  std::jthread thread([&] { body(6); });
  body(7);
  join_all(fibers);
  thread.join();
  EXPECT_EQ(counted[0] + counted[1] + counted[2], 2L * 8 * rounds);
}

/// `wait` locks `m` to read or to write and sets its argument, on worker 1, while other callers lock and unlock `m`.
template <class Mutex, class Wait>
void expect_overtaken_four_times(Wait wait) {
  rig r(2);
  Mutex m;
  std::atomic<bool> got = false;
  std::jthread([&m] { const std::lock_guard guard(m); }).join();
  r.rt.run([&] {
    m.lock();  // this ends a bias, if the thread has not
    m.unlock();
    m.lock();
    pirn::fiber waits = pirn::spawn([&] { wait(m, got); }, {.worker = 1});
    {
      held_worker other;
      for (int i = 0; i < 4; ++i) {
        m.unlock();
        EXPECT_TRUE(m.lock(clock::now() + 1s)) << i;
        other.let_others_run();
        EXPECT_FALSE(got) << i;
      }
      m.unlock();
      EXPECT_FALSE(m.lock(clock::now() + 10ms));
    }
    waits.join();
    EXPECT_TRUE(got);
    EXPECT_TRUE(m.lock(clock::now() + 1s));
    m.unlock();
  });
}

TYPED_TEST(lock_waiter_of_many, is_overtaken_from_elsewhere_four_times_at_most) {
  expect_overtaken_four_times<TypeParam>([](TypeParam& m, std::atomic<bool>& got) {
    const std::lock_guard guard(m);
    got = true;
  });
}

/// A semaphore of one permit as a lock.
class permit {
 public:
  void lock() { EXPECT_TRUE(free_.acquire().has_value()); }
  [[nodiscard]] bool lock(clock::time_point deadline) { return free_.acquire(deadline).has_value(); }
  void unlock() { free_.release(); }

 private:
  pirn::binary_semaphore free_{1};
};

TEST(permit_of_many, is_overtaken_from_elsewhere_four_times_at_most) {
  expect_overtaken_four_times<permit>([](permit& m, std::atomic<bool>& got) {
    const std::lock_guard guard(m);
    got = true;
  });
}

TEST(admitted_readers_of_many, are_overtaken_from_elsewhere_four_times_at_most) {
  expect_overtaken_four_times<pirn::shared_mutex>([](pirn::shared_mutex& m, std::atomic<bool>& got) {
    const std::shared_lock guard(m);
    got = true;
  });
}

TEST(admitted_readers_of_many, come_before_a_writer_who_waits_since_they_were_overtaken) {
  rig r(2);
  pirn::shared_mutex m;
  std::atomic<int> got = 0;
  r.rt.run([&] {
    m.lock();
    pirn::fiber reads = pirn::spawn(
        [&] {
          const std::shared_lock guard(m);
          EXPECT_EQ(got++, 0);
        },
        {.worker = 1});
    pirn::fiber writes;
    {
      const held_worker other;
      writes = pirn::spawn([&] {
        const std::lock_guard guard(m);
        EXPECT_EQ(got++, 1);
      });
      pirn::this_fiber::yield();
      m.unlock();
    }
    reads.join();
    writes.join();
  });
  EXPECT_EQ(got, 2);
}

}  // namespace
