// The idle stacks of a runtime give back the memory beyond the pool's mark: not at once, but soon.
#include <optional>
#include <vector>

#include "fiber/support.hpp"
#include "pirn/coro/coroutine.hpp"

namespace {

using namespace pirn_test;

constexpr std::size_t count = 3000;
constexpr std::size_t mark_stacks = 100;
constexpr std::size_t of_the_worker = 1024;  // stacks that it keeps at hand

pirn::guarded_pool_options options_with(pirn::platform::duration decay) {
  pirn::guarded_pool_options options;
  options.guard_size = 4096;
  options.idle_high_water = mark_stacks * 4096;
  options.idle_decay = decay;
  return options;
}

struct idle_rig {
  explicit idle_rig(pirn::platform::duration decay) : pool(options_with(decay)) { start(); }
  void start() { rt.emplace(pirn::runtime_options{.workers = 1, .stack_size = 8192, .stacks = &pool}); }

  /// Fibers that all have a stack at the same time, and then end.
  void use_many() {
    rt->run([] {
      std::vector<pirn::fiber> all;
      for (std::size_t i = 0; i < count; ++i) {
        all.push_back(pirn::spawn([] { pirn::this_fiber::yield(); }));
      }
      join_all(all);
    });
  }
  [[nodiscard]] std::size_t cold() const { return pool.statistics().classes.front().idle_cold; }
  [[nodiscard]] bool is_cold() const { return cold() >= count - of_the_worker - 2 * mark_stacks; }
  [[nodiscard]] bool eventually_cold() const {
    return eventually([this] { return is_cold(); });
  }

  pirn::guarded_pool pool;
  std::optional<pirn::runtime> rt;
};

// Sanitizers make the stacks larger, and so the estimate of what they hold.
#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)

TEST(IdleStacks, AreReusedWithTheirMemoryWithinTheDecay) {
  idle_rig r(1h);
  r.use_many();
  EXPECT_EQ(r.cold(), 0u);
  r.use_many();
  EXPECT_EQ(r.cold(), 0u);
}

TEST(IdleStacks, GiveTheirMemoryBackWhileTheRuntimeIsIdle) {
  idle_rig r(50ms);
  r.use_many();
  EXPECT_TRUE(r.eventually_cold());
}

TEST(IdleStacks, GiveTheirMemoryBackWhileTheRuntimeIsBusy) {
  idle_rig r(50ms);
  r.use_many();
  r.rt->run([&r] {
    const auto limit = clock::now() + 30s;
    while (!r.is_cold() && clock::now() < limit) {
      pirn::this_fiber::yield();  // the worker never runs out of work
    }
    EXPECT_TRUE(r.is_cold());
  });
}

TEST(IdleStacks, AreInUseWithinThePeriodAndStayWarm) {
  idle_rig r(300ms);
  for (int i = 0; i < 10; ++i) {
    r.use_many();
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(r.cold(), 0u);
  }
}

TEST(IdleStacks, GiveTheirMemoryBackAtOnceWithoutADecay) {
  idle_rig r(0ms);
  r.use_many();
  r.rt.reset();
  EXPECT_GE(r.cold(), count - 2 * mark_stacks);
}

TEST(IdleStacks, GiveTheirMemoryBackWhenTheRuntimeEnds) {
  idle_rig r(1h);
  r.use_many();
  r.rt.reset();
  EXPECT_GE(r.cold(), count - 2 * mark_stacks);
}

TEST(IdleStacks, GiveTheirMemoryBackOnAPlainThreadWhileTheWorkersSleep) {
  idle_rig r(1h);
  r.rt->run([] {});
  std::vector<pirn::coroutine<void()>> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.emplace_back(r.pool, 8192, [](auto& yield) { yield(); });
    all.back().resume();
  }
  all.clear();
  EXPECT_GE(r.cold(), count - 2 * mark_stacks);
}

TEST(IdleStacks, LetTheRuntimeSleepOnceTheyAreCold) {
  idle_rig r(20ms);
  r.use_many();
  ASSERT_TRUE(r.eventually_cold());
  std::this_thread::sleep_for(100ms);
  const auto before = r.rt->statistics(0).parks;
  std::this_thread::sleep_for(200ms);
  EXPECT_LE(r.rt->statistics(0).parks - before, 1u);
}

#endif

}  // namespace
