// Suspended fibers give back the memory of their stacks that they no longer use, and nothing else.
#include <array>
#include <utility>

#include "fiber/trim_support.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/generator.hpp"

namespace {

using namespace pirn_test;
namespace this_fiber = pirn::this_fiber;

constexpr std::size_t depth = trim_depth;
constexpr std::size_t stack_size = trim_stack_size;

pirn::stack stack_of_this_fiber() { return pirn::detail::running_fiber(pirn::detail::current_worker())->memory; }

/// As `trimmed`, but waits until the number no longer grows.
std::uint64_t trimmed_at_last(const rig& r) {
  std::uint64_t before = 0;
  std::uint64_t now = trimmed(r);
  while (now != before) {
    std::this_thread::sleep_for(10ms);
    before = std::exchange(now, trimmed(r));
  }
  return now;
}

/// Fibers that were deep once and then wait, with data on their stacks that must survive.
class crowd {
 public:
  crowd(rig& r, int count, const pirn::spawn_options& options = {}) : stacks_(static_cast<std::size_t>(count)) {
    for (int i = 0; i < count; ++i) {
      fibers_.push_back(r.rt.spawn(
          [this, i] {
            while (!done_) {
              std::array<int, 64> kept;
              kept.fill(i);
              asm volatile("" : : "r"(&kept) : "memory");
              go_deep();
              stacks_[static_cast<std::size_t>(i)] = stack_of_this_fiber();
              ++asleep_;
              static_cast<void>(gate_.wait());
              EXPECT_EQ(std::count(kept.begin(), kept.end(), i), 64);
            }
          },
          options));
    }
    EXPECT_TRUE(eventually([&] { return asleep_ == count; }));
  }
  ~crowd() {
    done_ = true;
    for (std::size_t i = 0; i < fibers_.size(); ++i) {
      gate_.signal();
    }
    join_all(fibers_);
  }
  void wake_one() { gate_.signal(); }
  [[nodiscard]] int asleep() const { return asleep_; }
  /// Returns the number of fibers that hold little memory.
  [[nodiscard]] std::uint64_t trimmed_ones() const {
    return static_cast<std::uint64_t>(std::count_if(
        stacks_.begin(), stacks_.end(), [](const pirn::stack& s) { return pirn::resident_bytes(s) <= shallow; }));
  }

 private:
  std::vector<pirn::stack> stacks_;
  std::vector<pirn::fiber> fibers_;
  std::atomic<int> asleep_ = 0;
  std::atomic<bool> done_ = false;
  event gate_;
};

// Nearly all: remains of unoptimized code on a stack may look like the root of another context.
constexpr int count = 40;
constexpr std::uint64_t nearly_all = 30;

TEST(trim, gives_back_what_lies_below_the_frames_of_all_that_wait) {
  rig r(2, {.stack_size = stack_size});
  crowd all(r, count);
  EXPECT_EQ(all.trimmed_ones(), 0u);
  r.rt.trim();
  EXPECT_TRUE(eventually([&] { return trimmed(r) >= nearly_all; }));
  const std::uint64_t first = trimmed_at_last(r);
  EXPECT_EQ(all.trimmed_ones(), first);
  for (int i = 0; i < 10; ++i) {  // only fibers that ran since have anything to give
    all.wake_one();
    EXPECT_TRUE(eventually([&] { return all.asleep() == count + i + 1; }));
    r.rt.trim();
    EXPECT_LE(trimmed_at_last(r), first + static_cast<std::uint64_t>(i) + 1);
  }
}

TEST(trim, comes_by_itself_once_in_each_long_wait) {
  rig r(2, {.stack_size = stack_size, .trim_after = 20ms});
  crowd all(r, count);
  EXPECT_TRUE(eventually([&] { return trimmed(r) >= nearly_all; }));
  const std::uint64_t first = trimmed_at_last(r);
  EXPECT_EQ(all.trimmed_ones(), first);
  const std::uint64_t parks = r.rt.statistics(0).parks + r.rt.statistics(1).parks;
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(trimmed(r), first);
  // Nothing is left to do, and no worker wakes up again and again to find that out.
  EXPECT_LE(r.rt.statistics(0).parks + r.rt.statistics(1).parks - parks, 4u);
}

TEST(trim, leaves_alone_who_waits_for_a_moment_only) {
  rig r(1, {.stack_size = stack_size, .trim_after = 10s});
  crowd all(r, 4);
  r.rt.run([&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(this_fiber::sleep_for(1ms));
    }
  });
  EXPECT_EQ(trimmed(r), 0u);
  EXPECT_EQ(all.trimmed_ones(), 0u);
}

TEST(trim, keeps_what_a_pool_was_told_to_keep) {
  pirn::guarded_pool pool({.prefault = 32 << 10});
  pirn::runtime rt({.workers = 1, .stack_size = stack_size, .stacks = &pool});
  pirn::stack mine;
  event gate;
  std::atomic<bool> deep = false;
  pirn::fiber one = rt.spawn([&] {
    go_deep();
    mine = stack_of_this_fiber();
    deep = true;
    static_cast<void>(gate.wait());
  });
  EXPECT_TRUE(eventually([&] { return deep.load(); }));
  EXPECT_TRUE(eventually([&] {
    rt.trim();
    return rt.statistics(0).trimmed == 1;
  }));
  EXPECT_GE(pirn::resident_bytes(mine), std::size_t{32} << 10);
  EXPECT_LT(pirn::resident_bytes(mine), depth);
  gate.signal();
  one.join();
}

using in_frame = pirn::generator<int, pirn::frame<16384>>;

PIRN_NOINLINE int sum_below(in_frame& numbers) {
  std::array<unsigned char, 20'000> kept;
  kept.fill(7);
  asm volatile("" : : "r"(&kept) : "memory");
  int sum = 0;
  for (const int n : numbers) {
    sum += n;
  }
  asm volatile("" : : "r"(&kept) : "memory");
  return sum + static_cast<int>(std::count(kept.begin(), kept.end(), 7));
}

/// Waits in the body of a generator whose stack lies in a frame of the fiber, with a frame of the fiber below it.
PIRN_NOINLINE int wait_in_frame(event& gate) {
  in_frame numbers([&](auto& yield) {
    yield(1);
    static_cast<void>(gate.wait());
    yield(2);
  });
  return sum_below(numbers);
}

TEST(trim, does_not_take_frames_that_lie_below_the_stack_of_a_generator) {
  rig r(1, {.stack_size = stack_size * slowdown});
  event gate;
  std::atomic<bool> waits = false;
  int result = 0;
  pirn::fiber inside = r.rt.spawn([&] {
    waits = true;
    result = wait_in_frame(gate);
  });
  pirn::fiber elsewhere = r.rt.spawn([&] {
    pirn::generator<int> numbers = [&](auto& yield) {
      static_cast<void>(gate.wait());
      yield(3);
    };
    for (const int n : numbers) {
      EXPECT_EQ(n, 3);
    }
  });
  crowd others(r, 1);  // its turn comes after theirs
  EXPECT_TRUE(eventually([&] {
    r.rt.trim();
    return trimmed(r) != 0;
  }));
  EXPECT_EQ(trimmed(r), 2u);  // all of them fit into one step
  gate.signal();
  gate.signal();
  inside.join();
  elsewhere.join();
  EXPECT_EQ(result, 20'003);
}

/// The bodies in which fibers wait that have been deep there.
class bodies {
 public:
  enum kind { coroutine, generator, generator_in_coroutine, kinds };

  bodies(rig& r, int number) : stacks_(static_cast<std::size_t>(number)) {
    for (int i = 0; i < number; ++i) {
      fibers_.push_back(r.rt.spawn([this, i] { wait_in(static_cast<kind>(i % kinds), i); }));
    }
    EXPECT_TRUE(eventually([&] { return asleep_ == number; }));
  }
  ~bodies() {
    for (std::size_t i = 0; i < fibers_.size(); ++i) {
      gate_.signal();
    }
    join_all(fibers_);
    EXPECT_EQ(intact_, static_cast<int>(fibers_.size()));
  }
  [[nodiscard]] std::uint64_t trimmed_ones() const {
    return static_cast<std::uint64_t>(std::count_if(
        stacks_.begin(), stacks_.end(), [](const pirn::stack& s) { return pirn::resident_bytes(s) <= shallow; }));
  }

 private:
  PIRN_NOINLINE void wait_deep(int number) {
    std::array<int, 64> kept;
    kept.fill(number);
    asm volatile("" : : "r"(&kept) : "memory");
    go_deep();
    stacks_[static_cast<std::size_t>(number)] = pirn::this_stack::bounds();
    ++asleep_;
    static_cast<void>(gate_.wait());
    intact_ += std::count(kept.begin(), kept.end(), number) == 64 ? 1 : 0;
  }
  void wait_in_generator(int number) {
    pirn::generator<int> numbers = [&](auto& yield) {
      wait_deep(number);
      yield(number);
    };
    for (const int n : numbers) {
      EXPECT_EQ(n, number);
    }
  }
  void wait_in(kind what, int number) {
    if (what == generator) {
      wait_in_generator(number);
      return;
    }
    pirn::coroutine<int()> body([&](auto& yield) {
      what == coroutine ? wait_deep(number) : wait_in_generator(number);
      yield(number);
      return -1;
    });
    EXPECT_EQ(body.resume(), number);
    EXPECT_EQ(body.resume(), -1);
  }

  std::vector<pirn::stack> stacks_;
  std::vector<pirn::fiber> fibers_;
  std::atomic<int> asleep_ = 0;
  std::atomic<int> intact_ = 0;
  event gate_;
};

TEST(trim, gives_back_what_a_coroutine_or_generator_does_not_use_while_a_fiber_waits_in_it) {
  constexpr int number = 99;
  rig r(2, {.stack_size = stack_size * slowdown});
  bodies all(r, number);
  EXPECT_EQ(all.trimmed_ones(), 0u);
  r.rt.trim();
  EXPECT_TRUE(eventually([&] { return trimmed(r) == number; }));
  EXPECT_EQ(all.trimmed_ones(), static_cast<std::uint64_t>(number));
}

TEST(trim, does_not_take_frames_of_a_coroutine_that_lie_below_the_stack_of_a_generator) {
  rig r(1, {.stack_size = stack_size * slowdown});
  pirn::guarded_pool pool;
  event gate;
  int result = 0;
  pirn::fiber inside = r.rt.spawn([&] {
    pirn::coroutine<int()> body(pool, stack_size * slowdown, [&](auto&) { return wait_in_frame(gate); });
    result = body.resume();
  });
  crowd others(r, 1);  // its turn comes after that
  EXPECT_TRUE(eventually([&] {
    r.rt.trim();
    return trimmed(r) != 0;
  }));
  EXPECT_EQ(trimmed(r), 1u);
  gate.signal();
  inside.join();
  EXPECT_EQ(result, 20'003);
}

TEST(trim, beside_workers_that_steal) {
  rig r(2, {.stack_size = stack_size});
  crowd all(r, 20, {.worker = pirn::spawn_options::any_worker, .migratable = true});
  for (int i = 0; i < scaled(2000); ++i) {
    r.rt.trim();
    all.wake_one();
    if (i % 16 == 0) {
      std::this_thread::yield();
    }
  }
  EXPECT_TRUE(eventually([&] { return all.asleep() == 20 + scaled(2000); }));
}

}  // namespace
