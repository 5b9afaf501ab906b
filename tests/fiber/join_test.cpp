// A join knows a fiber's end at once, wherever it is called and whatever has run in the fiber's place since.
#include <memory>
#include <stdexcept>

#include "fiber/support.hpp"
#include "pirn/fiber/co.hpp"
#include "pirn/fiber/fiber_local.hpp"

namespace {

using namespace pirn_test;

struct failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Lets a fiber end on `worker` of `r`. Then another fiber keeps that worker busy until `join` has joined the first
/// one, which was spawned on that worker or by the caller.
template <class Body, class Join>
void expect_known_at_once(rig& r, int worker, bool spawned_there, Body body, Join join) {
  std::atomic<bool> busy = false;
  std::atomic<bool> joined = false;
  pirn::fiber ends;
  pirn::fiber computes;
  const auto both = [&] {
    const auto hold = [&] {
      busy = true;
      const auto limit = clock::now() + 10s;
      compute_until([&] { return joined || clock::now() > limit; });
      EXPECT_TRUE(joined);
    };
    ends = spawned_there ? pirn::spawn(body) : r.rt.spawn(body, {.worker = worker});
    computes = spawned_there ? pirn::spawn(hold) : r.rt.spawn(hold, {.worker = worker});
  };
  if (spawned_there) {
    r.rt.spawn(both, {.worker = worker}).detach();
  } else {
    both();
  }
  compute_until([&] { return busy.load(); });
  join(ends);
  joined = true;
  EXPECT_FALSE(ends.joinable());
  computes.join();
}

/// As `expect_known_at_once`, but joins from a plain thread and from a fiber of another worker.
template <class Body, class Join>
void expect_known_everywhere(Body body, Join join) {
  for (const bool spawned_there : {false, true}) {
    rig r(2);
    expect_known_at_once(r, 1, spawned_there, body, join);
    r.rt.run([&] { expect_known_at_once(r, 1, spawned_there, body, join); });
  }
}

TEST(join, returns_though_another_fiber_computes_where_it_ended) {
  expect_known_everywhere([] {}, [](pirn::fiber& f) { f.join(); });
}

TEST(join, with_a_deadline_returns_so_too) {
  expect_known_everywhere([] {}, [](pirn::fiber& f) { EXPECT_TRUE(f.join(clock::now() + 5s)); });
}

TEST(join, throws_so_what_the_fiber_threw) {
  expect_known_everywhere([] { throw failure("here"); }, [](pirn::fiber& f) { EXPECT_THROW(f.join(), failure); });
}

TEST(join, by_the_destructor_returns_so_too) {
  expect_known_everywhere([] {}, [](pirn::fiber& f) { f = {}; });
}

TEST(join, leaves_the_locals_of_a_fiber_destroyed_once) {
  static pirn::fiber_local<std::shared_ptr<int>> local;
  const auto counted = std::make_shared<int>(0);
  expect_known_everywhere([&] { local.get() = counted; }, [](pirn::fiber& f) { f.join(); });
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(join, by_a_coroutine_returns_so_too) {
  for (const bool spawned_there : {false, true}) {
    rig r(2);
    r.rt.run([&] {
      expect_known_at_once(
          r, 1, spawned_there, [] {},
          [](pirn::fiber& f) { pirn::await([](pirn::fiber& what) -> pirn::task<> { co_await what; }(f)); });
    });
  }
}

TEST(join, at_any_moment_of_the_end) {
  rig r(2);
  r.rt.run([&] {
    for (int i = 0; i < scaled(20'000); ++i) {
      pirn::fiber moved;
      pirn::fiber computes;
      std::atomic<bool> begun = false;
      std::atomic<bool> joined = false;
      r.rt.spawn(
              [&] {
                moved = pirn::spawn([] {});
                computes = pirn::spawn([&] {
                  const auto limit = clock::now() + 10s;
                  compute_until([&] { return joined || clock::now() > limit; });
                  EXPECT_TRUE(joined) << i;
                });
                begun = true;
              },
              {.worker = 1})
          .detach();
      compute_until([&] { return begun.load(); });
      for (int k = 0; k < i % 200; ++k) {
        pirn::platform::relax();
      }
      moved.join();
      joined = true;
      computes.join();
    }
  });
}

}  // namespace
