// Barriers: phases, their completion, and parties that leave or give up.
#include "pirn/sync/barrier.hpp"

#include <memory>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::barrier;
using pirn::wait_error;

TEST(barrier, phases_of_fibers_and_threads) {
  rig r(3);
  const int rounds = scaled(1000);
  constexpr std::size_t parties = 9;
  int completed = 0;  // not atomic: the barrier orders it and `at`
  std::array<int, parties> at = {};
  const auto check = [&]() noexcept {
    for (const int each : at) {
      EXPECT_EQ(each, completed);
    }
    ++completed;
  };
  barrier phases(parties, check);
  const auto body = [&](std::size_t who) {
    for (int i = 0; i < rounds; ++i) {
      at[who] = i;
      if (static_cast<std::size_t>(i) % parties == who) {
        const auto token = phases.arrive();
        pirn::this_fiber::yield();
        EXPECT_TRUE(phases.wait(token).has_value());
      } else {
        EXPECT_TRUE(phases.arrive_and_wait().has_value());
      }
      EXPECT_EQ(completed, i + 1);  // the next phase cannot end without this party
    }
  };
  std::vector<pirn::fiber> fibers;
  for (std::size_t i = 0; i < parties - 1; ++i) {
    fibers.push_back(r.rt.spawn([&, i] { body(i); }));
  }
  body(parties - 1);
  join_all(fibers);
  EXPECT_EQ(completed, rounds);
}

TEST(barrier, the_last_one_completes_before_anybody_goes_on) {
  rig r(1);
  std::string order;
  r.rt.run([&] {
    auto suspending = [&]() noexcept {
      order += '<';
      pirn::this_fiber::yield();  // other fibers run, but not the waiting ones
      order += '>';
    };
    barrier phases(3, suspending);
    std::vector<pirn::fiber> all;
    for (const char who : {'a', 'b', 'c'}) {
      all.push_back(pirn::spawn([&, who] {
        for (int i = 0; i < 2; ++i) {
          EXPECT_TRUE(phases.arrive_and_wait().has_value());
          order += who;
        }
      }));
    }
    join_all(all);
  });
  ASSERT_EQ(order.size(), 10u);
  EXPECT_EQ(order.substr(0, 2), "<>");
  EXPECT_EQ(order.substr(5, 2), "<>");
}

TEST(barrier, parties_may_leave) {
  rig r(2);
  barrier phases(3);
  phases.arrive_and_drop();
  auto both = phases.arrive(2);
  EXPECT_TRUE(phases.wait(both).has_value());
  auto one = phases.arrive();  // two are expected now
  EXPECT_EQ(phases.wait(one, clock::time_point{}).error(), wait_error::timed_out);
  phases.leave(one);  // one in the next phase
  auto two = phases.arrive();
  EXPECT_TRUE(phases.wait(one).has_value());
  EXPECT_TRUE(phases.wait(two).has_value());
  EXPECT_TRUE(phases.arrive_and_wait().has_value());
}

TEST(barrier, who_leaves_late_lets_the_others_go_on) {
  barrier phases(2);
  auto first = phases.arrive();
  auto second = phases.arrive();
  EXPECT_TRUE(phases.wait(first).has_value());
  auto next = phases.arrive();  // by the second party
  phases.leave(first);          // its phase is over, and the present phase expects it
  EXPECT_TRUE(phases.wait(next).has_value());
  EXPECT_TRUE(phases.wait(second).has_value());
  EXPECT_TRUE(phases.arrive_and_wait().has_value());
}

TEST(barrier, who_gives_up_waiting_has_left) {
  rig r(2);
  barrier phases(3);
  pirn::fiber stopped = r.rt.spawn([&] { EXPECT_EQ(phases.arrive_and_wait().error(), wait_error::stopped); });
  pirn::fiber late =
      r.rt.spawn([&] { EXPECT_EQ(phases.arrive_and_wait(clock::now() + 2ms).error(), wait_error::timed_out); });
  std::this_thread::sleep_for(1ms);
  stopped.request_stop();
  stopped.join();
  late.join();
  for (int i = 0; i < 3; ++i) {  // alone from now on
    EXPECT_TRUE(phases.arrive_and_wait().has_value());
  }
}

TEST(barrier, may_be_destroyed_once_all_have_passed) {
  rig r(2);
  for (int i = 0; i < scaled(3000); ++i) {
    auto meeting = std::make_unique<barrier<>>(2);
    pirn::fiber f = r.rt.spawn([&shared = *meeting] { static_cast<void>(shared.arrive()); });
    EXPECT_TRUE(meeting->arrive_and_wait().has_value());
    meeting.reset();
    f.join();
  }
}

TEST(barrier_death, misuse_is_diagnosed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  barrier one(1);
  EXPECT_DEATH(static_cast<void>(one.arrive(2)), "more arrivals at a barrier than it expects");
  EXPECT_DEATH(static_cast<void>(one.arrive(0)), "arrivals at a barrier");
  EXPECT_DEATH(barrier<>(-1), "expects a negative number");
  one.arrive_and_drop();
  EXPECT_DEATH(one.arrive_and_drop(), "more arrivals at a barrier than it expects");
}

}  // namespace
