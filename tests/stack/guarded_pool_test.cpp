// guarded_pool: sizes, guards, limits, statistics, caches of threads, and leak checks.

#include "pirn/stack/expert/guarded_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include "stack/support.hpp"

#if defined(PIRN_ASAN)
#include <sanitizer/lsan_interface.h>
#endif

namespace {

using pirn::guard_kind;
using pirn::guarded_pool;
using pirn::guarded_pool_options;
using pirn::guarded_pool_statistics;
using pirn::stack;
using pirn::stack_error;
using stack_test::guard_of;
using stack_test::page;
using stack_test::readable;

constexpr std::size_t KiB = 1024;

TEST(guarded_pool, hands_out_what_was_asked_for) {
  guarded_pool pool;
  for (const std::size_t size :
       {std::size_t{1}, 4 * KiB, 5 * KiB + 1, 64 * KiB, 100'000 * std::size_t{1}, 8192 * KiB}) {
    const pirn::stack_result got = pool.allocate(size);
    ASSERT_TRUE(got) << to_string(got.error);
    EXPECT_GE(got.value.size(), size);
    EXPECT_LE(got.value.size(), std::max(size * 5 / 4 + 4 * page(), 4 * page())) << size;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(got.value.top()) % 16, 0u);
    std::memset(got.value.limit(), 0x5a, got.value.size());
    pool.deallocate(got.value);
  }
}

TEST(guarded_pool, refuses_impossible_sizes) {
  guarded_pool pool;
  EXPECT_EQ(pool.allocate(0).error, stack_error::invalid_size);
  EXPECT_EQ(pool.allocate(std::size_t{1} << 40).error, stack_error::invalid_size);
  EXPECT_EQ(pool.allocate(SIZE_MAX).error, stack_error::invalid_size);
  EXPECT_THROW(guarded_pool::cache(pool, 0), std::system_error);
}

TEST(guarded_pool, no_guard_must_be_asked_for_by_name) {
  guarded_pool_options options;
  options.guard_size = 0;
  EXPECT_THROW(guarded_pool{options}, std::system_error);
  options.guard_size = page() + 1;
  EXPECT_THROW(guarded_pool{options}, std::system_error);
  options.guard = guard_kind::none;
  guarded_pool pool(options);
  const stack value = pool.allocate(64 * KiB).value;
  EXPECT_TRUE(value);
  pool.deallocate(value);
}

TEST(guarded_pool, every_page_of_every_guard_faults) {
  for (const guard_kind kind : {guard_kind::automatic, guard_kind::lightweight, guard_kind::protected_pages}) {
    for (const std::size_t guard_size : {page(), 64 * KiB}) {
      guarded_pool_options options;
      options.guard = kind;
      options.guard_size = guard_size;
      guarded_pool pool(options);
      stack stacks[20];
      for (stack& each : stacks) {
        const pirn::stack_result got = pool.allocate(16 * KiB);
        if (got.error == stack_error::guard_refused && kind == guard_kind::lightweight) {
          GTEST_SKIP() << "this kernel has no lightweight guards";
        }
        ASSERT_TRUE(got) << to_string(got.error);
        each = got.value;
      }
      for (const stack& each : stacks) {
        char* const guard = guard_of(each, guard_size);
        for (std::size_t at = 0; at < guard_size; at += page()) {
          EXPECT_FALSE(readable(guard + at)) << to_string(kind) << " guard of " << guard_size << " at " << at;
        }
        EXPECT_FALSE(readable(static_cast<char*>(each.limit()) - 1));
        EXPECT_TRUE(readable(each.limit()));
        EXPECT_TRUE(readable(static_cast<char*>(each.top()) - 1));
        pool.deallocate(each);
      }
    }
  }
}

TEST(guarded_pool, a_stack_keeps_its_guard_when_its_memory_is_given_back) {
  for (const guard_kind kind : {guard_kind::automatic, guard_kind::protected_pages}) {
    guarded_pool_options options;
    options.guard = kind;
    guarded_pool pool(options);
    const stack first = pool.allocate(64 * KiB).value;
    std::memset(first.limit(), 1, first.size());
    pool.deallocate(first);
    pool.trim();
    EXPECT_EQ(resident_bytes(first), 0u);
    const stack again = pool.allocate(64 * KiB).value;
    ASSERT_EQ(again.limit(), first.limit());
    for (std::size_t at = 0; at < options.guard_size; at += page()) {
      EXPECT_FALSE(readable(guard_of(again, options.guard_size) + at));
    }
    pool.deallocate(again);
  }
}

TEST(guarded_pool, like_stacks_begin_at_different_cache_sets) {
  guarded_pool pool;
  std::vector<stack> stacks;
  std::set<std::uintptr_t> places;
  for (int i = 0; i < 240; ++i) {
    stacks.push_back(pool.allocate(64 * KiB).value);
    const auto top = reinterpret_cast<std::uintptr_t>(stacks.back().top());
    places.insert(top % page());
    // A shallow fiber touches one page: at least 1 KiB of it lies below top.
    EXPECT_TRUE(top % page() == 0 || top % page() >= KiB);
    EXPECT_EQ(top % 128, 0u);
  }
  EXPECT_GE(places.size(), 20u);
  const auto stride =
      reinterpret_cast<std::uintptr_t>(stacks[1].limit()) - reinterpret_cast<std::uintptr_t>(stacks[0].limit());
  EXPECT_EQ(stride / page() % 2, 1u) << "slots an odd number of pages apart";
  for (const stack& each : stacks) {
    pool.deallocate(each);
  }

  guarded_pool_options options;
  options.colour = false;
  guarded_pool plain(options);
  for (int i = 0; i < 10; ++i) {
    stacks[i] = plain.allocate(64 * KiB).value;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(stacks[i].top()) % page(), 0u);
  }
  for (int i = 0; i < 10; ++i) {
    plain.deallocate(stacks[i]);
  }
}

TEST(guarded_pool, limits_are_errors_and_end_when_a_stack_comes_back) {
  guarded_pool_options options;
  options.max_stacks = 3;
  guarded_pool pool(options);
  stack stacks[3];
  for (stack& each : stacks) {
    each = pool.allocate(64 * KiB).value;
    ASSERT_TRUE(each);
  }
  EXPECT_EQ(pool.allocate(64 * KiB).error, stack_error::pool_limit);
  EXPECT_EQ(pool.allocate(16 * KiB).error, stack_error::pool_limit) << "all size classes count";
  pool.deallocate(stacks[1]);
  stacks[1] = pool.allocate(64 * KiB).value;
  EXPECT_TRUE(stacks[1]);
  for (const stack& each : stacks) {
    pool.deallocate(each);
  }

  options = {};
  options.max_bytes = 200 * KiB;
  guarded_pool small(options);
  stacks[0] = small.allocate(64 * KiB).value;
  stacks[1] = small.allocate(64 * KiB).value;
  EXPECT_TRUE(stacks[0] && stacks[1]);
  EXPECT_EQ(small.allocate(64 * KiB).error, stack_error::pool_limit);
  small.deallocate(stacks[0]);
  small.deallocate(stacks[1]);
}

TEST(guarded_pool, statistics_count_by_class) {
  guarded_pool pool;
  guarded_pool::cache cache(pool, 64 * KiB, 8);
  const stack a = pool.allocate(16 * KiB).value;
  const stack b = cache.allocate().value;
  const stack c = cache.allocate().value;
  static_cast<char*>(a.top())[-1] = 1;
  cache.deallocate(c);
  const guarded_pool_statistics stats = pool.statistics(pirn::stack_sampling::memory);
  ASSERT_EQ(stats.classes.size(), 2u);
  EXPECT_EQ(stats.classes[0].stack_size, 16 * KiB);
  EXPECT_EQ(stats.classes[0].in_use, 1u);
  EXPECT_EQ(stats.classes[0].idle, 0u);
  EXPECT_EQ(stats.classes[0].resident, page());
  EXPECT_GT(stats.classes[0].high_water, 0u);
  EXPECT_LE(stats.classes[0].high_water, page());
  EXPECT_EQ(stats.classes[1].stack_size, 64 * KiB);
  EXPECT_EQ(stats.classes[1].in_use, 1u);
  EXPECT_EQ(stats.classes[1].idle, 1u) << "one lies in the cache";
  EXPECT_EQ(stats.classes[1].resident, 0u);
  EXPECT_EQ(stats.classes[1].lightweight_guards + stats.classes[1].protected_guards, 2u);
  EXPECT_EQ(stats.in_use, 2u);
  EXPECT_EQ(stats.idle, 1u);
  pool.deallocate(a);
  cache.deallocate(b);
}

TEST(guarded_pool_cache, is_last_in_first_out) {
  guarded_pool pool;
  guarded_pool::cache cache(pool, 64 * KiB, 8);
  const stack a = cache.allocate().value;
  const stack b = cache.allocate().value;
  cache.deallocate(a);
  cache.deallocate(b);
  EXPECT_EQ(cache.allocate().value.limit(), b.limit());
  EXPECT_EQ(cache.allocate().value.limit(), a.limit());
  cache.deallocate(a);
  cache.deallocate(b);
}

TEST(guarded_pool_cache, does_not_touch_the_stack) {
  guarded_pool pool;
  guarded_pool::cache cache(pool);
  const stack value = cache.allocate().value;
  cache.deallocate(value);
  EXPECT_EQ(resident_bytes(value), 0u);
}

TEST(guarded_pool_cache, flushes_the_older_half_and_refills) {
  guarded_pool pool;
  constexpr std::size_t capacity = 8;
  guarded_pool::cache cache(pool, 64 * KiB, capacity);
  std::vector<stack> stacks;
  std::set<void*> distinct;
  for (std::size_t i = 0; i < 3 * capacity; ++i) {
    stacks.push_back(cache.allocate().value);
    ASSERT_TRUE(stacks.back());
    EXPECT_TRUE(distinct.insert(stacks.back().limit()).second) << "handed out twice";
  }
  for (const stack& each : stacks) {
    cache.deallocate(each);
    EXPECT_LE(cache.size(), capacity);
  }
  EXPECT_EQ(pool.statistics().in_use, 0u);
  EXPECT_EQ(pool.statistics().idle, 3 * capacity);
  EXPECT_EQ(cache.allocate().value.limit(), stacks.back().limit()) << "the one used last stayed";
  cache.deallocate(stacks.back());
  for (std::size_t i = 0; i < 3 * capacity; ++i) {
    EXPECT_TRUE(distinct.contains(cache.allocate().value.limit())) << "an idle stack was there";
  }
  EXPECT_EQ(pool.statistics().idle, 0u);
  for (const stack& each : stacks) {
    cache.deallocate(each);
  }
}

TEST(guarded_pool_cache, does_not_grow_where_a_limit_is_for_all) {
  guarded_pool_options options;
  options.max_stacks = 100;
  guarded_pool pool(options);
  constexpr std::size_t capacity = 8;
  guarded_pool::cache cache(pool, 64 * KiB, capacity);
  for (std::size_t i = 0; i < capacity; ++i) {
    ASSERT_EQ(cache.reserve(), stack_error::none) << i;
  }
  EXPECT_EQ(cache.reserve(), stack_error::pool_limit);
  EXPECT_EQ(cache.size(), capacity);
  for (std::size_t i = 0; i < capacity; ++i) {
    cache.unreserve();
  }
}

TEST(guarded_pool_cache, grows_as_more_are_reserved_and_shrinks_again) {
  guarded_pool pool;
  constexpr std::size_t capacity = 8;
  guarded_pool::cache cache(pool, 64 * KiB, capacity);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(cache.reserve(), stack_error::none) << i;
  }
  EXPECT_EQ(cache.reserved(), 100u);

  std::set<void*> distinct;
  for (int i = 0; i < 60; ++i) {  // one at a time, all on the stack that was used last
    const stack one = cache.allocate_reserved();
    distinct.insert(one.limit());
    cache.deallocate(one);
  }
  EXPECT_EQ(distinct.size(), 1u);
  EXPECT_EQ(cache.size(), 100u);

  cache.shrink();  // the others are still reserved
  EXPECT_GE(cache.size(), 40u);
  std::vector<stack> at_once;
  for (int i = 0; i < 40; ++i) {
    at_once.push_back(cache.allocate_reserved());
    EXPECT_TRUE(at_once.back());
  }
  for (const stack& each : at_once) {
    cache.deallocate(each);
  }
  EXPECT_EQ(pool.statistics().idle, 100u);
  for (int i = 0; i < 1000; ++i) {
    cache.age();
  }
  EXPECT_LE(cache.size(), 2 * capacity);
  cache.shrink();
  EXPECT_LE(cache.size(), capacity);
  EXPECT_EQ(pool.statistics().idle, 100u);
}

TEST(guarded_pool_cache, passes_other_sizes_on_and_returns_everything) {
  guarded_pool pool;
  {
    guarded_pool::cache cache(pool, 64 * KiB, 8);
    const stack other = pool.allocate(16 * KiB).value;
    cache.deallocate(other);
    EXPECT_EQ(cache.size(), 0u);
    EXPECT_EQ(pool.allocate(16 * KiB).value.limit(), other.limit());
    pool.deallocate(other);
    cache.deallocate(cache.allocate().value);
    EXPECT_EQ(cache.size(), 1u);
  }
  EXPECT_EQ(pool.statistics().in_use, 0u);
  EXPECT_EQ(pool.statistics().idle, 2u);
}

TEST(guarded_pool_cache, says_why_there_is_none) {
  guarded_pool_options options;
  options.max_stacks = 1;
  guarded_pool pool(options);
  guarded_pool::cache cache(pool);
  const stack only = cache.allocate().value;
  const pirn::stack_result refused = cache.allocate();
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.error, stack_error::pool_limit);
  EXPECT_FALSE(refused.value);
  cache.deallocate(only);
  EXPECT_TRUE(cache.allocate());
  cache.deallocate(only);
}

// Stacks move between threads in every possible way. The thread that holds a stack marks it.
TEST(guarded_pool, no_stack_is_in_two_hands) {
  guarded_pool_options options;
  options.idle_high_water = 32 * page();  // memory is given back constantly
  guarded_pool pool(options);
  constexpr int threads = 4;
  const int rounds = stack_test::sanitized ? 2000 : 20000;
  std::mutex lock;
  std::deque<stack> passed_on;
  std::atomic<int> clashes{0};
  const auto work = [&](unsigned seed) {
    guarded_pool::cache cache(pool, 16 * KiB, 16);
    std::minstd_rand random(seed);
    std::vector<stack> mine;
    const auto mark = [](const stack& value) { return reinterpret_cast<unsigned*>(value.top()) - 1; };
    for (int i = 0; i < rounds; ++i) {
      const unsigned choice = random() / 64 % 8;
      if (choice < 4 && mine.size() < 64) {
        const stack value = choice < 3 ? cache.allocate().value : pool.allocate(16 * KiB).value;
        *mark(value) = seed;
        mine.push_back(value);
      } else if (!mine.empty()) {
        const std::size_t which = random() / 64 % mine.size();
        const stack value = mine[which];
        mine[which] = mine.back();
        mine.pop_back();
        clashes += *mark(value) != seed;
        *mark(value) = 0;
        if (choice == 4) {
          pool.deallocate(value);
        } else if (choice == 5) {
          const std::lock_guard guard(lock);
          passed_on.push_back(value);
        } else {
          cache.deallocate(value);
        }
      }
      if (choice == 7) {
        const std::lock_guard guard(lock);
        if (!passed_on.empty()) {
          mine.push_back(passed_on.front());
          *mark(mine.back()) = seed;
          passed_on.pop_front();
        }
      }
    }
    for (const stack& each : mine) {
      clashes += *mark(each) != seed;
      cache.deallocate(each);
    }
  };
  std::vector<std::thread> all;
  for (unsigned i = 1; i <= threads; ++i) {
    all.emplace_back(work, i);
  }
  for (int i = 0; i < 50; ++i) {
    static_cast<void>(pool.statistics());  // counting does not disturb
  }
  for (std::thread& each : all) {
    each.join();
  }
  EXPECT_EQ(clashes, 0);
  for (const stack& each : passed_on) {
    pool.deallocate(each);
  }
  EXPECT_EQ(pool.statistics().in_use, 0u);
}

TEST(guarded_pool, the_default_pool_caches_by_thread) {
  guarded_pool& pool = pirn::default_stack_pool();
  const std::size_t before = pool.statistics().in_use;
  stack kept;
  std::thread([&] {
    const stack value = pool.allocate(pirn::default_stack_size).value;
    pool.deallocate(value);
    kept = pool.allocate(pirn::default_stack_size).value;
    EXPECT_EQ(kept.limit(), value.limit());
  }).join();
  EXPECT_EQ(pool.statistics().in_use, before + 1);
  pool.deallocate(kept);
  const stack large = pool.allocate(1024 * KiB).value;
  EXPECT_GE(large.size(), 1024 * KiB);
  pool.deallocate(large);
  const stack small = pool.allocate(KiB).value;
  EXPECT_LT(small.size(), 16 * KiB) << "a small request does not take a default-sized stack";
  pool.deallocate(small);
  EXPECT_EQ(pool.statistics().in_use, before);
}

#if defined(PIRN_ASAN)
// A block that only a suspended stack refers to is not leaked; a block that only an idle stack remembers is.
TEST(guarded_pool, leak_checks_see_the_stacks_in_use_and_only_those) {
  const auto leaks_after = [](bool give_back) {
    return stack_test::in_child([=] {
      static guarded_pool* const pool = new guarded_pool;  // its stacks never all come back
      const stack value = pool->allocate(64 * KiB).value;
      stack_test::run_on(value, [&] { static_cast<void**>(value.top())[-4] = std::malloc(100); });
      stack_test::run_on(pool->allocate(64 * KiB).value, [] {
        volatile char scribble[8 * KiB];  // no copy of the pointer is left in a register
        std::memset(const_cast<char*>(scribble), 0, sizeof scribble);
      });
      if (give_back) {
        pool->deallocate(value);
      }
      return __lsan_do_recoverable_leak_check() == 0 ? 10 : 11;
    });
  };
  const stack_test::child_result in_use = leaks_after(false);
  EXPECT_TRUE(in_use.exited_with(10)) << in_use.status << in_use.error_output;
  const stack_test::child_result idle = leaks_after(true);
  EXPECT_TRUE(idle.exited_with(11)) << idle.status << idle.error_output;
}
#endif

TEST(guarded_pool_death, destroyed_while_a_stack_is_in_use) {
  EXPECT_DEATH(
      {
        guarded_pool_options options;
        options.name = "borrowed";
        guarded_pool pool(options);
        static_cast<void>(pool.allocate(64 * KiB));
      },
      "\"borrowed\" is destroyed while 1 of its stacks of 65536 bytes");
}

TEST(guarded_pool_death, a_stack_given_back_twice) {
  EXPECT_DEATH(
      {
        guarded_pool pool;
        const stack value = pool.allocate(64 * KiB).value;
        pool.deallocate(value);
        pool.deallocate(value);
      },
      "given back twice");
}

}  // namespace
