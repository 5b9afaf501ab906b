// Shared mutexes: readers and writers in turns, stops and deadlines.
#include "pirn/sync/shared_mutex.hpp"

#include <memory>
#include <mutex>
#include <shared_mutex>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::shared_mutex;
using pirn::wait_error;

TEST(shared_mutex, readers_share_and_writers_do_not) {
  rig r(3);
  shared_mutex m;
  const int rounds = scaled(2000);
  std::atomic<int> readers = 0;
  long first = 0;  // not atomic: the lock orders them
  long second = 0;
  const auto write = [&] {
    for (int i = 0; i < rounds; ++i) {
      const std::unique_lock guard(m);
      EXPECT_EQ(readers, 0);
      ++first;
      if (i % 16 == 0) {
        pirn::this_fiber::yield();
      }
      ++second;
    }
  };
  const auto read = [&] {
    for (int i = 0; i < rounds; ++i) {
      const std::shared_lock guard(m);
      ++readers;
      EXPECT_EQ(first, second);
      if (i % 16 == 0) {
        pirn::this_fiber::yield();
      }
      --readers;
    }
  };
  std::vector<pirn::fiber> fibers;
  for (int i = 0; i < 9; ++i) {
    fibers.push_back(i % 3 == 0 ? r.rt.spawn(write, {.worker = i / 3}) : r.rt.spawn(read, {.worker = i / 3}));
  }
  std::jthread writing(write);
  std::jthread reading(read);
  join_all(fibers);
  writing.join();
  reading.join();
  EXPECT_EQ(first, 4L * rounds);
  m.lock_shared();
  EXPECT_TRUE(m.try_lock_shared());
  EXPECT_FALSE(m.try_lock());
  m.unlock_shared();
  m.unlock_shared();
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST(shared_mutex, tries_and_gives_up) {
  shared_mutex m;
  EXPECT_TRUE(m.try_lock_shared());
  EXPECT_TRUE(m.try_lock_shared());
  EXPECT_TRUE(m.lock_shared(clock::time_point{}).has_value());
  EXPECT_FALSE(m.try_lock());
  EXPECT_EQ(m.lock(clock::now() + 1ms).error(), wait_error::timed_out);
  EXPECT_TRUE(m.try_lock_shared());  // the writer has gone
  for (int i = 0; i < 4; ++i) {
    m.unlock_shared();
  }
  EXPECT_TRUE(m.lock(clock::time_point{}).has_value());
  EXPECT_FALSE(m.try_lock());
  EXPECT_FALSE(m.try_lock_shared());
  EXPECT_EQ(m.lock_shared(clock::now() + 1ms).error(), wait_error::timed_out);
  m.unlock();
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST(shared_mutex, phases_alternate) {
  rig r(1);
  shared_mutex m;
  std::string order;
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    const auto write = [&](char who) {
      all.push_back(pirn::spawn([&, who] {
        const std::unique_lock guard(m);
        order += who;
        pirn::this_fiber::yield();
      }));
      pirn::this_fiber::yield();
    };
    const auto read = [&] {
      all.push_back(pirn::spawn([&] {
        const std::shared_lock guard(m);
        order += 'r';
        pirn::this_fiber::yield();
      }));
      pirn::this_fiber::yield();
    };
    m.lock_shared();
    write('A');
    read();  // behind A, though a reader holds the lock
    write('B');
    read();
    EXPECT_EQ(order, "");
    EXPECT_FALSE(m.try_lock_shared());
    m.unlock_shared();
    join_all(all);
  });
  EXPECT_EQ(order, "ArrB");
}

TEST(shared_mutex, a_writer_gets_in_among_readers_without_end) {
  rig r(1);
  shared_mutex m;
  r.rt.run([&] {
    bool written = false;
    std::vector<pirn::fiber> readers;
    for (int i = 0; i < 3; ++i) {  // at any time at least one of them holds the lock
      readers.push_back(pirn::spawn([&] {
        for (int k = 0; k < 10'000 && !written; ++k) {
          const std::shared_lock guard(m);
          pirn::this_fiber::yield();
          pirn::this_fiber::yield();
        }
      }));
      pirn::this_fiber::yield();
    }
    EXPECT_TRUE(m.lock(clock::now() + 10s).has_value());
    EXPECT_FALSE(written);
    written = true;
    m.unlock();
    join_all(readers);
  });
}

TEST(shared_mutex, a_writer_that_gives_up_lets_the_readers_behind_it_in) {
  rig r(1);
  shared_mutex m;
  r.rt.run([&] {
    m.lock_shared();
    bool read = false;
    pirn::fiber writer = pirn::spawn([&] { EXPECT_EQ(m.lock(pirn::platform::never).error(), wait_error::stopped); });
    pirn::this_fiber::yield();
    pirn::fiber late = pirn::spawn([&] { EXPECT_EQ(m.lock(clock::now() + 2ms).error(), wait_error::timed_out); });
    pirn::this_fiber::yield();
    pirn::fiber reader = pirn::spawn([&] {
      const std::shared_lock guard(m);
      read = true;
    });
    pirn::this_fiber::yield();
    writer.request_stop();
    writer.join();
    EXPECT_FALSE(read);  // another writer waits
    late.join();
    reader.join();
    EXPECT_TRUE(read);
    EXPECT_TRUE(m.try_lock_shared());
    m.unlock_shared();
    m.unlock_shared();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

TEST(shared_mutex, a_stop_ends_the_forms_with_a_deadline_only) {
  rig r(1);
  shared_mutex m;
  m.lock();
  std::atomic<bool> stopped = false;
  std::atomic<bool> read = false;
  pirn::fiber f = r.rt.spawn([&] {
    EXPECT_EQ(m.lock(pirn::platform::never).error(), wait_error::stopped);
    EXPECT_EQ(m.lock_shared(pirn::platform::never).error(), wait_error::stopped);
    stopped = true;
    m.lock_shared();
    read = true;
    m.unlock_shared();
    m.lock();
    m.unlock();
  });
  std::this_thread::sleep_for(1ms);
  f.request_stop();
  ASSERT_TRUE(eventually([&] { return stopped.load(); }));
  std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(read);
  m.unlock();
  f.join();
  EXPECT_TRUE(read);
}

TEST(shared_mutex, may_be_destroyed_by_its_last_owner) {
  rig r(2);
  for (int i = 0; i < scaled(3000); ++i) {
    auto shared = std::make_unique<shared_mutex>();
    shared_mutex& here = *shared;
    const bool reads = i % 2 == 0;
    reads ? here.lock_shared() : here.lock();
    if (i % 3 == 0) {  // contended before, but now without a waiter
      EXPECT_FALSE(here.lock(clock::time_point{}).has_value());
    }
    pirn::fiber f = r.rt.spawn([&] {
      here.lock();
      here.unlock();
      shared.reset();  // the unlock below may not have returned yet
    });
    for (int k = 0; k < i % 100; ++k) {
      pirn::platform::relax();
    }
    reads ? here.unlock_shared() : here.unlock();
    f.join();
  }
}

TEST(shared_mutex_death, misuse_is_diagnosed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  shared_mutex m;
  EXPECT_DEATH(m.unlock(), "called on a shared_mutex that is not locked for writing");
  EXPECT_DEATH(m.unlock_shared(), "called on a shared_mutex that is not locked for reading");
  m.lock_shared();
  EXPECT_DEATH(m.unlock(), "is not locked for writing");
  m.unlock_shared();
  m.lock();
  EXPECT_DEATH(m.unlock_shared(), "is not locked for reading");
  m.unlock();
}

}  // namespace
