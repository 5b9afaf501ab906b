// Selects over the twins of pirn/sync/expert/local.hpp.
#include <memory>

#include "pirn/sync/expert/local.hpp"
#include "sync/selections.hpp"

namespace {

using namespace pirn_test;
using pirn::channel;
using pirn::select;
using pirn::selection;
using pirn::try_select;
using pirn::until;
using pirn::wait_error;

TEST(local_select, are_cases_beside_the_others) {
  for (std::size_t which = 0; which < 5; ++which) {
    on_one_worker([which] {
      pirn::local::channel<int> near;
      pirn::local::channel<std::unique_ptr<int>> full(1);
      pirn::local::event bell(pirn::event_reset::automatic);
      channel<int> far;
      ASSERT_TRUE(full.send(std::make_unique<int>(8)).has_value());
      int value = 0;
      auto nine = std::make_unique<int>(9);
      pirn::fiber f = pirn::spawn([&] {
        const selection fired = select(receive(near, value), send(full, std::move(nine)), wait(bell),
                                       receive(far, value), until(clock::now() + (which == 4 ? 0s : 3600s)));
        EXPECT_TRUE(succeeded(fired, which)) << fired.index;
      });
      pirn::this_fiber::yield();
      EXPECT_EQ(value, 0);
      switch (which) {
        case 0:
          EXPECT_TRUE(near.send(10).has_value());
          break;
        case 1:
          EXPECT_EQ(*full.receive().value(), 8);
          break;
        case 2:
          bell.set();
          break;
        case 3:
          EXPECT_TRUE(far.send(10).has_value());
          break;
        default:
          break;
      }
      f.join();
      EXPECT_EQ(value, which == 0 || which == 3 ? 10 : 0);
      EXPECT_EQ(nine == nullptr, which == 1);
      EXPECT_EQ(*full.try_receive().value(), which == 1 ? 9 : 8);
      EXPECT_FALSE(bell.is_set());
      // No waiter is left in any list.
      EXPECT_EQ(near.try_send(1).error(), wait_error::timed_out);
      EXPECT_EQ(far.try_send(1).error(), wait_error::timed_out);
      bell.set();
      EXPECT_TRUE(bell.is_set());
    });
  }
}

TEST(local_select, that_are_ready_fire_at_once) {
  on_one_worker([] {
    pirn::local::channel<int> one(1);
    pirn::local::event bell(pirn::event_reset::automatic);
    int value = 0;
    EXPECT_TRUE(failed(try_select(receive(one, value), wait(bell)), 2, wait_error::timed_out));
    EXPECT_TRUE(succeeded(try_select(wait(bell), send(one, 5)), 1));
    bell.set();
    EXPECT_TRUE(succeeded(try_select(wait(bell), send(one, 6)), 0));
    EXPECT_FALSE(bell.is_set());
    EXPECT_TRUE(succeeded(select(receive(one, value), wait(bell)), 0));
    EXPECT_EQ(value, 5);
    one.close();
    EXPECT_TRUE(failed(select(receive(one, value), wait(bell)), 0, wait_error::closed));
  });
}

TEST(local_select, are_left_when_another_worker_or_a_stop_ends_it) {
  rig r(2);
  channel<int> far;
  pirn::fiber f = r.rt.spawn(
      [&] {
        pirn::local::channel<int> near;
        pirn::local::event bell;
        int value = 0;
        for (int i = 1; i <= 200; ++i) {
          EXPECT_TRUE(succeeded(select(receive(near, value), wait(bell), receive(far, value)), 2));
          EXPECT_EQ(value, i);
          EXPECT_EQ(near.try_send(1).error(), wait_error::timed_out);
        }
        EXPECT_TRUE(failed(select(receive(near, value), wait(bell)), 2, wait_error::stopped));
        EXPECT_EQ(near.try_send(1).error(), wait_error::timed_out);
      },
      {.worker = 0});
  pirn::fiber g = r.rt.spawn(
      [&] {
        for (int i = 1; i <= 200; ++i) {
          EXPECT_TRUE(far.send(i).has_value());
        }
        f.request_stop();
      },
      {.worker = 1});
  g.join();
  f.join();
}

TEST(local_select, are_refused_where_they_could_not_be_guarded) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto migratable = [] {
    rig r(1);
    r.rt.spawn(
            [] {
              pirn::local::event bell;
              static_cast<void>(select(wait(bell)));
            },
            {.migratable = true})
        .join();
  };
  EXPECT_DEATH(migratable(), "a migratable fiber waits for an object of pirn::local");
  const auto elsewhere = [] {
    pirn::local::event bell;
    static_cast<void>(select(wait(bell)));
  };
  EXPECT_DEATH(elsewhere(), "an object of pirn::local is used by a plain thread");
}

}  // namespace
