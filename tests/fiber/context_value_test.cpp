// Context values: bound for a block, and inherited by the children of its scopes.
#include "pirn/fiber/context_value.hpp"

#include "fiber/support.hpp"
#include "pirn/fiber/scope.hpp"

namespace {

using namespace pirn_test;
using pirn::context_value;
using pirn::scope;
namespace this_fiber = pirn::this_fiber;

const context_value<std::string> request;
const context_value<int> depth;
using request_binding = context_value<std::string>::binding;
using depth_binding = context_value<int>::binding;

TEST(context_value, bound_for_a_block) {
  rig r(1);
  const auto check = [] {
    EXPECT_EQ(request.get(), nullptr);
    const request_binding outer(request, "outer");
    {
      const request_binding inner(request, "inner");
      const depth_binding other(depth, 3);
      EXPECT_EQ(*request.get(), "inner");
      EXPECT_EQ(*depth.get(), 3);
    }
    EXPECT_EQ(*request.get(), "outer");
    EXPECT_EQ(depth.get(), nullptr);
  };
  check();
  r.rt.run(check);
  EXPECT_EQ(request.get(), nullptr);
}

TEST(context_value, inherited_at_the_spawn_and_kept) {
  rig r(2);
  const auto check = [&] {
    std::atomic<int> right = 0;
    scope s(r.rt);
    const depth_binding all(depth, 0);
    for (int i = 0; i < 20; ++i) {
      const request_binding mine(request, std::to_string(i));
      s.spawn(
          [&, i] {
            EXPECT_TRUE(this_fiber::sleep_for(100us));  // the binding has ended by then
            const depth_binding deeper(depth, *depth.get() + 1);
            const std::string expected = std::to_string(i);
            scope own;
            own.spawn([&] { right += *request.get() == expected && *depth.get() == 1 ? 1 : 0; });
            own.join();
          },
          {.worker = i % 2});
    }
    EXPECT_EQ(request.get(), nullptr);
    s.join();
    EXPECT_EQ(right, 20);
    EXPECT_EQ(*depth.get(), 0);
  };
  check();
  r.rt.run(check);
}

TEST(context_value, not_inherited_outside_of_scopes) {
  rig r(1);
  r.rt.run([] {
    const depth_binding mine(depth, 1);
    pirn::fiber f = pirn::spawn([] { EXPECT_EQ(depth.get(), nullptr); });
    f.join();
  });
}

TEST(context_value_death_test, ended_out_of_order) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto first = std::make_unique<depth_binding>(depth, 1);
        const depth_binding second(depth, 2);
        first.reset();
      },
      "before a newer one");
}

}  // namespace
