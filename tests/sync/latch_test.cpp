// Latches: waits that end when the count reaches zero, and waits that are given up.
#include "pirn/sync/latch.hpp"

#include <optional>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::latch;
using pirn::wait_error;

TEST(latch, opens_once) {
  latch door(3);
  EXPECT_FALSE(door.try_wait());
  EXPECT_EQ(door.wait(clock::time_point{}).error(), wait_error::timed_out);
  door.count_down(2);
  door.count_down(0);
  EXPECT_FALSE(door.try_wait());
  door.count_down();
  const latch& seen = door;
  EXPECT_TRUE(seen.try_wait());
  EXPECT_TRUE(seen.wait().has_value());
  EXPECT_TRUE(latch(0).try_wait());
  EXPECT_GT(latch::max(), 1'000'000);
}

TEST(latch, all_wait_for_all) {
  rig r(3);
  for (int round = 0; round < scaled(300); ++round) {
    latch door(10);
    std::array<int, 10> results = {};  // not atomic: the latch orders them
    std::vector<pirn::fiber> fibers;
    const auto body = [&](std::size_t i) {
      results[i] = 1;
      EXPECT_TRUE(door.arrive_and_wait().has_value());
      for (const int each : results) {
        EXPECT_EQ(each, 1);
      }
    };
    for (std::size_t i = 0; i < 8; ++i) {
      fibers.push_back(r.rt.spawn([&, i] { body(i); }));
    }
    std::jthread thread([&] { body(8); });
    body(9);
    join_all(fibers);
  }
}

TEST(latch, gives_up_but_has_arrived) {
  rig r(1);
  latch door(3);
  EXPECT_EQ(door.arrive_and_wait(1, clock::now() + 1ms).error(), wait_error::timed_out);
  pirn::fiber f = r.rt.spawn([&] { EXPECT_EQ(door.arrive_and_wait().error(), wait_error::stopped); });
  std::this_thread::sleep_for(1ms);
  f.request_stop();
  f.join();
  EXPECT_FALSE(door.try_wait());
  EXPECT_TRUE(door.arrive_and_wait().has_value());
}

TEST(latch, may_be_destroyed_as_soon_as_the_wait_returns) {
  rig r(2);
  for (int i = 0; i < scaled(3000); ++i) {
    std::optional<latch> door(std::in_place, 2);
    latch& shared = *door;
    r.rt.spawn([&] { shared.count_down(); }, {.worker = 0}).detach();
    r.rt.spawn([&] { shared.count_down(); }, {.worker = 1}).detach();
    EXPECT_TRUE(door->wait().has_value());
    door.reset();
  }
}

TEST(latch_death, below_zero_is_diagnosed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  latch door(2);
  EXPECT_DEATH(door.count_down(3), "a latch is counted down below zero");
  EXPECT_DEATH(door.count_down(-1), "a latch is counted down below zero");
  door.count_down(2);
  EXPECT_DEATH(door.count_down(), "a latch is counted down below zero");
}

}  // namespace
