// The record of bodies whose stacks lie in a frame of their consumer.
#include "pirn/context/detail/frame_bodies.hpp"
#include "fiber/support.hpp"
#include "pirn/context/continuation.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/generator.hpp"

namespace {

using pirn::frame;
using pirn::generator;
using pirn_test::rig;

/// Runs `f` on a plain thread and on a fiber.
template <class F>
void everywhere(F&& f) {
  f();
  rig r(1);
  r.rt.run(f);
}

bool may_hold(const void* position) {
  return pirn::detail::frame_bodies::may_hold(reinterpret_cast<std::uintptr_t>(position));
}

TEST(frame_bodies, who_opens_one_walks_only_on_the_memory_of_a_body) {
  everywhere([] {
    const int here = 0;
    const auto body = [&](auto& yield) {
      const int there = 0;
      EXPECT_TRUE(may_hold(&there));
      EXPECT_FALSE(may_hold(&here));
      yield(1);
    };
    const void* where = nullptr;
    {
      generator<int, frame<16384>> suspended = body;
      auto at = suspended.begin();
      EXPECT_EQ(*at, 1);
      EXPECT_FALSE(may_hold(&here));
      where = reinterpret_cast<char*>(&suspended) + sizeof suspended / 2;
      EXPECT_TRUE(may_hold(where));
    }
    EXPECT_FALSE(may_hold(where));
  });
}

TEST(frame_bodies, also_of_one_on_a_buffer) {
  everywhere([] {
    pirn::frame_buffer<16384> buffer;
    const void* const where = reinterpret_cast<char*>(&buffer) + sizeof buffer / 2;
    {
      pirn::coroutine<int()> one(buffer, [&](auto& yield) {
        yield(1);
        return 2;
      });
      EXPECT_EQ(one.resume(), 1);
      EXPECT_TRUE(may_hold(where));
    }
    EXPECT_FALSE(may_hold(where));
    {
      using k = pirn::continuation<int>;
      k one(buffer, [](k back, int) { return std::move(back).finish(2); });
      EXPECT_TRUE(may_hold(where));
      EXPECT_EQ(one.exchange(1), 2);
    }
    EXPECT_FALSE(may_hold(where));
  });
}

TEST(frame_bodies, also_of_more_in_one_place_than_it_has_room_for) {
  pirn::frame_buffer<1024> some[16];
  for (auto& each : some) {
    pirn::detail::frame_bodies::made(&each, &each + 1);
  }
  EXPECT_TRUE(may_hold(&some[15]));
  for (auto& each : some) {
    pirn::detail::frame_bodies::gone(&each, &each + 1);
  }
  EXPECT_FALSE(may_hold(&some[15]));
}

}  // namespace
