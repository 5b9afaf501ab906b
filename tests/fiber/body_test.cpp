// The callables that a fiber runs, and how they get into the fiber.
#include <array>
#include <functional>
#include <stdexcept>
#include <string>

#include "fiber/support.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/fiber/this_fiber.hpp"

namespace {

using namespace pirn_test;

int calls = 0;
void counts() { ++calls; }

TEST(body, a_function_or_whatever_can_be_called) {
  on_one_worker([] {
    calls = 0;
    pirn::spawn(counts).join();
    pirn::spawn(&counts).join();
    pirn::spawn(counts, {.name = "counts"}).join();
    const std::function<void()> shared = counts;
    pirn::spawn(shared).join();
    pirn::spawn(std::ref(shared)).join();
    pirn::spawn([large = std::array<long, 40>{1}] { calls += static_cast<int>(large[0]); }).join();
    pirn::spawn([text = std::string("moved")]() mutable { calls += text.empty() ? 0 : 1; }).join();
    pirn::scope all;
    all.spawn(counts);
    all.spawn(shared);
    all.join();
    EXPECT_EQ(calls, 9);
  });
}

struct throws_when_copied {
  throws_when_copied() = default;
  throws_when_copied(const throws_when_copied&) { throw std::runtime_error("copy"); }
  void operator()() const {}
};

TEST(body, that_throws_when_copied_leaks_nothing) {
  rig r;
  const throws_when_copied callable;
  EXPECT_THROW(static_cast<void>(r.rt.try_spawn(callable)), std::runtime_error);
  EXPECT_EQ(r.pool.statistics().in_use, 0u);
  EXPECT_EQ(r.rt.statistics().spawned, 0u);
}

TEST(body, whose_copy_spawns_and_yields_begins_after_that_one) {
  on_one_worker([] {
    std::string order;
    struct spawns_when_copied {
      std::string* order;
      explicit spawns_when_copied(std::string& text) : order(&text) {}
      spawns_when_copied(const spawns_when_copied& other) : order(other.order) {
        pirn::fiber first = pirn::spawn([this] { *order += 'a'; });
        pirn::this_fiber::yield();
        first.join();
      }
      void operator()() const { *order += 'b'; }
    };
    const spawns_when_copied callable(order);
    pirn::spawn(callable).join();
    EXPECT_EQ(order, "ab");
  });
}

/// Migrates to another worker when it is copied.
struct moves_when_copied {
  explicit moves_when_copied(std::atomic<int>& count) : ran(&count) {}
  moves_when_copied(const moves_when_copied& other) : ran(other.ran) {
    EXPECT_TRUE(pirn::this_fiber::migrate_to(static_cast<std::size_t>(++*ran) % 3));
    pirn::this_fiber::yield();
  }
  void operator()() const { ++*ran; }
  std::atomic<int>* ran;
};

TEST(body, whose_copy_moves_the_caller_begins_where_that_goes_on) {
  rig r(3);
  const int rounds = scaled(300);
  std::atomic<int> ran = 0;
  std::vector<pirn::fiber> parents;
  for (int i = 0; i < 6; ++i) {
    parents.push_back(r.rt.spawn(
        [&] {
          const moves_when_copied body(ran);
          for (int round = 0; round < rounds; ++round) {
            pirn::fiber plain = pirn::spawn(body);
            pirn::fiber named = pirn::spawn(body, {.name = "named"});
            plain.join();
            named.join();
            pirn::scope all;
            all.spawn(body);
            all.join();
          }
        },
        {.worker = i % 3, .migratable = true}));
  }
  join_all(parents);
  EXPECT_EQ(ran, 6 * rounds * 3 * 2);
  // A child reports its end to the scope before its worker counts it.
  EXPECT_TRUE(eventually([&] { return r.rt.statistics().live_fibers == 0; }));
}

}  // namespace
