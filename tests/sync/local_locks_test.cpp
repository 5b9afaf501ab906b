// The locks of the fibers of one worker: recursive, shared, once.
#include "pirn/sync/expert/local_locks.hpp"

#include <mutex>
#include <shared_mutex>
#include <stdexcept>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::wait_error;
namespace local = pirn::local;

TEST(local_recursive_mutex, is_its_owners_until_the_last_unlock) {
  on_one_worker([] {
    local::recursive_mutex m;
    std::vector<int> order;
    m.lock();
    m.lock();
    EXPECT_TRUE(m.try_lock());
    std::vector<pirn::fiber> others;
    for (int i = 0; i < 3; ++i) {
      others.push_back(pirn::spawn([&, i] {
        EXPECT_FALSE(m.try_lock());
        const std::lock_guard outer(m);
        const std::lock_guard inner(m);
        order.push_back(i);
        pirn::this_fiber::yield();
        order.push_back(i);
      }));
    }
    for (int i = 0; i < 3; ++i) {
      pirn::this_fiber::yield();
      EXPECT_TRUE(order.empty());
      m.unlock();
    }
    join_all(others);
    EXPECT_EQ(order, (std::vector<int>{0, 0, 1, 1, 2, 2}));
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

TEST(local_recursive_mutex, a_wait_ends_by_deadline_and_stop) {
  on_one_worker([] {
    local::recursive_mutex m;
    m.lock();
    EXPECT_TRUE(m.lock(clock::now() - 1s).has_value());  // the fiber owns it already
    pirn::fiber late = pirn::spawn([&] { EXPECT_EQ(m.lock(clock::now() + 1ms).error(), wait_error::timed_out); });
    pirn::fiber stopped = pirn::spawn([&] { EXPECT_EQ(m.lock(pirn::platform::never).error(), wait_error::stopped); });
    pirn::this_fiber::yield();
    stopped.request_stop();
    late.join();
    stopped.join();
    m.unlock();
    m.unlock();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

TEST(local_shared_mutex, lets_readers_together_and_writers_alone) {
  on_one_worker([] {
    local::shared_mutex m;
    int readers = 0;
    int most = 0;
    bool writing = false;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 8; ++i) {
      all.push_back(pirn::spawn([&, i] {
        for (int round = 0; round < 20; ++round) {
          if (i % 4 == 0) {
            const std::unique_lock guard(m);
            EXPECT_EQ(readers, 0);
            EXPECT_FALSE(std::exchange(writing, true));
            pirn::this_fiber::yield();
            writing = false;
          } else {
            const std::shared_lock guard(m);
            EXPECT_FALSE(writing);
            most = std::max(most, ++readers);
            pirn::this_fiber::yield();
            --readers;
          }
        }
      }));
    }
    join_all(all);
    EXPECT_GT(most, 1);
    EXPECT_TRUE(m.try_lock());
    EXPECT_FALSE(m.try_lock_shared());
    m.unlock();
  });
}

TEST(local_shared_mutex, a_writer_that_waits_keeps_new_readers_out_until_it_gives_up) {
  on_one_worker([] {
    local::shared_mutex m;
    m.lock_shared();
    pirn::fiber writer = pirn::spawn([&] { EXPECT_EQ(m.lock(pirn::platform::never).error(), wait_error::stopped); });
    pirn::this_fiber::yield();
    EXPECT_FALSE(m.try_lock_shared());
    EXPECT_EQ(m.lock_shared(clock::now() + 1ms).error(), wait_error::timed_out);
    bool read = false;
    pirn::fiber reader = pirn::spawn([&] {
      const std::shared_lock guard(m);
      read = true;
    });
    pirn::this_fiber::yield();
    EXPECT_FALSE(read);
    writer.request_stop();
    writer.join();
    reader.join();
    EXPECT_TRUE(read);
    m.unlock_shared();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

TEST(local_shared_mutex, turns_alternate) {
  on_one_worker([] {
    local::shared_mutex m;
    std::vector<char> order;
    m.lock();
    const auto write = [&] {
      const std::unique_lock guard(m);
      order.push_back('w');
    };
    const auto read = [&] {
      const std::shared_lock guard(m);
      order.push_back('r');
    };
    std::vector<pirn::fiber> all;
    all.push_back(pirn::spawn(write));
    all.push_back(pirn::spawn(read));
    all.push_back(pirn::spawn(write));
    all.push_back(pirn::spawn(read));
    pirn::this_fiber::yield();
    m.unlock();
    join_all(all);
    EXPECT_EQ(order, (std::vector<char>{'r', 'r', 'w', 'w'}));
  });
}

TEST(local_once, is_done_once_by_one_at_a_time) {
  on_one_worker([] {
    local::once_flag flag;
    int attempts = 0;
    int done = 0;
    const auto body = [&] {
      const int mine = ++attempts;
      pirn::this_fiber::yield();
      if (mine == 1) {
        throw std::runtime_error("the first fails");
      }
      ++done;
    };
    std::vector<pirn::fiber> all;
    int thrown = 0;
    for (int i = 0; i < 4; ++i) {
      all.push_back(pirn::spawn([&] {
        try {
          local::call_once(flag, body);
          EXPECT_EQ(done, 1);
        } catch (const std::runtime_error&) {
          ++thrown;
        }
      }));
    }
    join_all(all);
    EXPECT_EQ(attempts, 2);
    EXPECT_EQ(done, 1);
    EXPECT_EQ(thrown, 1);
    local::call_once(flag, [](int) { FAIL(); }, 1);
  });
}

TEST(local_once, a_wait_for_another_one_ends_by_deadline_and_stop) {
  on_one_worker([] {
    local::once_flag flag;
    pirn::fiber slow =
        pirn::spawn([&] { local::call_once(flag, [] { static_cast<void>(pirn::this_fiber::sleep_for(20ms)); }); });
    pirn::this_fiber::yield();
    EXPECT_EQ(flag.call([] {}, clock::now() + 1ms).error(), wait_error::timed_out);
    pirn::fiber stopped =
        pirn::spawn([&] { EXPECT_EQ(flag.call([] {}, pirn::platform::never).error(), wait_error::stopped); });
    pirn::this_fiber::yield();
    stopped.request_stop();
    stopped.join();
    slow.join();
    EXPECT_TRUE(flag.call([] { FAIL(); }, clock::now()).has_value());
  });
}

class local_locks_death : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(local_locks_death, misuse_is_named) {
  const auto unlocks = [] { on_one_worker([] { local::recursive_mutex().unlock(); }); };
  EXPECT_DEATH(unlocks(), "called on a local recursive_mutex that the caller does not own");
  const auto unlocks_of_another = [] {
    on_one_worker([] {
      local::recursive_mutex m;
      m.lock();
      pirn::spawn([&] { m.unlock(); }).join();
    });
  };
  EXPECT_DEATH(unlocks_of_another(), "called on a local recursive_mutex that the caller does not own");
  const auto writes = [] { on_one_worker([] { local::shared_mutex().unlock(); }); };
  EXPECT_DEATH(writes(), "that is not locked for writing");
  const auto reads = [] { on_one_worker([] { local::shared_mutex().unlock_shared(); }); };
  EXPECT_DEATH(reads(), "that is not locked for reading");
}

}  // namespace
