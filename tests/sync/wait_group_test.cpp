// Wait groups: waits until all added work is done, and waits that are given up.
#include "pirn/sync/wait_group.hpp"

#include <optional>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::wait_error;
using pirn::wait_group;

TEST(wait_group, waits_until_nothing_is_left) {
  rig r(2);
  wait_group group;
  EXPECT_TRUE(group.wait().has_value());  // nothing to be done
  std::array<int, 50> results = {};       // not atomic: `wait` orders them
  for (int& slot : results) {
    group.add();
    r.rt.spawn([&] {
          pirn::this_fiber::yield();
          slot = 1;
          group.done();
        })
        .detach();
  }
  EXPECT_TRUE(group.wait().has_value());
  for (const int each : results) {
    EXPECT_EQ(each, 1);
  }
  EXPECT_EQ(group.count(), 0u);
}

TEST(wait_group, wakes_everybody_and_can_be_used_again) {
  rig r(3);
  wait_group group;
  for (int round = 0; round < scaled(300); ++round) {
    group.add(2);
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 6; ++i) {
      all.push_back(r.rt.spawn([&] { EXPECT_TRUE(group.wait().has_value()); }));
    }
    std::jthread thread([&] { EXPECT_TRUE(group.wait().has_value()); });
    group.done();
    EXPECT_EQ(group.count(), 1u);
    group.done();
    join_all(all);
  }
}

TEST(wait_group, gives_up) {
  rig r(1);
  wait_group group(1);
  const auto deadline_passes = [&] {
    EXPECT_EQ(group.wait(clock::now() + 1ms).error(), wait_error::timed_out);
    EXPECT_EQ(group.wait(clock::time_point{}).error(), wait_error::timed_out);
  };
  deadline_passes();
  r.rt.run(deadline_passes);
  pirn::fiber f = r.rt.spawn([&] {
    EXPECT_EQ(group.wait().error(), wait_error::stopped);
    EXPECT_EQ(group.wait().error(), wait_error::stopped);
    group.done();
    EXPECT_TRUE(group.wait().has_value());
  });
  std::this_thread::sleep_for(1ms);
  f.request_stop();
  f.join();
}

TEST(wait_group, may_be_destroyed_as_soon_as_the_wait_returns) {
  rig r(2);
  for (int i = 0; i < scaled(3000); ++i) {
    std::optional<wait_group> group(std::in_place, 2);
    wait_group& shared = *group;
    r.rt.spawn([&] { shared.done(); }, {.worker = 0}).detach();
    r.rt.spawn([&] { shared.done(); }, {.worker = 1}).detach();
    EXPECT_TRUE(group->wait().has_value());
    group.reset();
  }
}

TEST(wait_group_death, more_done_than_added_is_diagnosed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  wait_group group(1);
  group.done();
  EXPECT_DEATH(group.done(), "more often than items were added");
}

}  // namespace
