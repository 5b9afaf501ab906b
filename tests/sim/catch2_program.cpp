// Explorations in tests of Catch2, as docs/testing.md says.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <pirn/sim/explore.hpp>

#include "pirn/sim/thread.hpp"
#include "pirn/sim/var.hpp"

using namespace pirn;

namespace {

int two_increments() {
  sim::atomic<int> count(0);
  {
    const auto add = [&] { count.store(count.load() + 1); };
    const sim::thread a(add);
    const sim::thread b(add);
  }
  return count.load();
}

}  // namespace

// NOLINTBEGIN(bugprone-chained-comparison): the framework's way to see both sides

TEST_CASE("an exploration that finds nothing passes") {
  const sim::result found = sim::explore([] { sim::check(two_increments() != 0); });
  INFO(found.text());
  REQUIRE(found);
  CHECK(found.complete);
}

TEST_CASE("what sim::check finds is told") {
  const sim::result found = sim::explore([] { sim::check(two_increments() == 2, "an update is lost"); });
  REQUIRE(found.what == sim::outcome::assertion);
  CHECK_THAT(found.message, Catch::Contains("an update is lost"));
  CHECK_THAT(found.text(), Catch::Contains("PIRN_SIM_REPLAY=" + found.seed));
}

TEST_CASE("an assertion of the framework that holds is none of the exploration's business") {
  const sim::result found = sim::explore([] { REQUIRE(two_increments() > 0); });
  INFO(found.text());
  REQUIRE(found);
}

// The framework counts it as a failure, so it runs separately.
TEST_CASE("an assertion of the framework that does not hold ends the search", "[.fails]") {
  const sim::result found = sim::explore([] { REQUIRE(two_increments() == 2); });
  FAIL(found.text());
}

// NOLINTEND(bugprone-chained-comparison)
