// guarded_pool where the kernel refuses, and the memory that it keeps. Child processes reach the limits of a process.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <vector>

#include "pirn/stack/expert/guarded_pool.hpp"
#include "stack/support.hpp"

namespace {

using pirn::guard_kind;
using pirn::guarded_pool;
using pirn::guarded_pool_options;
using pirn::guarded_pool_statistics;
using pirn::stack;
using pirn::stack_error;
using stack_test::guard_of;
using stack_test::in_child;
using stack_test::page;
using stack_test::readable;

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr int unsupported = 77;

/// A number in kB from /proc/self/status, in bytes.
std::size_t status_bytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  std::string word;
  std::size_t value = 0;
  while (file >> word) {
    if (word == key + ":") {
      file >> value;
      return value * KiB;
    }
  }
  return 0;
}

/// Allocates up to `most` stacks. Returns why it got no more, or none.
stack_error fill(std::vector<stack>& stacks, std::size_t most, guarded_pool& pool, std::size_t size) {
  stacks.reserve(most);
  while (stacks.size() < most) {
    const pirn::stack_result got = pool.allocate(size);
    if (!got) {
      return got.error;
    }
    stacks.push_back(got.value);
  }
  return stack_error::none;
}

std::size_t count_mappings() {
  std::ifstream file("/proc/self/maps");
  std::string line;
  std::size_t lines = 0;
  while (std::getline(file, line)) {
    ++lines;
  }
  return lines;
}

#define CHECK_OR_RETURN(condition, code)                      \
  do {                                                        \
    if (!(condition)) {                                       \
      std::fprintf(stderr, "%d: %s\n", __LINE__, #condition); \
      return code;                                            \
    }                                                         \
  } while (false)

/// Returns whether every page of the guard faults and the stack is writable.
bool is_guarded(const stack& value, std::size_t guard_size) {
  for (std::size_t at = 0; at < guard_size; at += page()) {
    if (readable(guard_of(value, guard_size) + at)) {
      return false;
    }
  }
  std::memset(value.limit(), 1, value.size());
  return true;
}

/// Makes the kernel refuse MADV_GUARD_INSTALL from now on, like a kernel before 6.13; by default that of one range.
bool pretend_old_kernel(std::uint32_t call = SYS_madvise, unsigned argument = 2) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
               static_cast<std::uint32_t>(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 102, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(guarded_pool_limits, an_old_kernel_gets_protected_pages) {
  const stack_test::child_result child = in_child([] {
    CHECK_OR_RETURN(pretend_old_kernel(), unsupported);
    guarded_pool_options options;
    guarded_pool pool(options);
    stack stacks[10];
    for (stack& each : stacks) {
      each = pool.allocate(64 * KiB).value;
      CHECK_OR_RETURN(each, 1);
      CHECK_OR_RETURN(is_guarded(each, options.guard_size), 2);
    }
    const auto stats = pool.statistics();
    CHECK_OR_RETURN(stats.classes[0].lightweight_guards == 0 && stats.classes[0].protected_guards == 10, 3);
    for (const stack& each : stacks) {
      pool.deallocate(each);
    }
    options.guard = guard_kind::lightweight;
    guarded_pool strict(options);
    CHECK_OR_RETURN(strict.allocate(64 * KiB).error == stack_error::guard_refused, 4);
    return 0;
  });
  if (child.exited_with(unsupported)) {
    GTEST_SKIP() << "no seccomp filters here";
  }
  EXPECT_TRUE(child.exited_with(0)) << child.status << " " << child.error_output;
}

TEST(guarded_pool_limits, locked_memory_gets_protected_pages) {
  if (stack_test::sanitized) {
    GTEST_SKIP() << "a sanitizer's shadow cannot be locked";
  }
  const stack_test::child_result child = in_child([] {
    guarded_pool_options options;
    options.guard_size = 16 * KiB;
    guarded_pool before(options);
    const stack early = before.allocate(16 * KiB).value;
    CHECK_OR_RETURN(early, 1);
    CHECK_OR_RETURN(mlockall(MCL_FUTURE) == 0, unsupported);
    {
      const std::size_t resident = status_bytes("VmRSS");
      guarded_pool pool(options);
      stack stacks[10];
      for (stack& each : stacks) {
        const pirn::stack_result got = pool.allocate(16 * KiB);
        CHECK_OR_RETURN(got, 2);
        each = got.value;
        CHECK_OR_RETURN(is_guarded(each, options.guard_size), 3);
      }
      CHECK_OR_RETURN(pool.statistics().classes[0].protected_guards == 10, 4);
      CHECK_OR_RETURN(status_bytes("VmRSS") < resident + 8 * MiB, 5);  // only the stacks are locked
      for (const stack& each : stacks) {
        pool.deallocate(each);
      }
      pool.trim();
      options.guard = guard_kind::lightweight;
      guarded_pool strict(options);
      CHECK_OR_RETURN(strict.allocate(16 * KiB).error == stack_error::guard_refused, 6);
    }
    // A slab that was made earlier and is locked now, which fails half-way, at the first guard.
    mlock(early.limit(), 8 * page());
    stack more[10];
    for (stack& each : more) {
      each = before.allocate(16 * KiB).value;
      CHECK_OR_RETURN(each, 7);
      CHECK_OR_RETURN(is_guarded(each, options.guard_size), 8);
    }
    CHECK_OR_RETURN(before.statistics().classes[0].protected_guards > 0, 9);
    for (const stack& each : more) {
      before.deallocate(each);
    }
    before.deallocate(early);
    return 0;
  });
  if (child.exited_with(unsupported)) {
    GTEST_SKIP() << "memory cannot be locked here";
  }
  EXPECT_TRUE(child.exited_with(0)) << child.status << " " << child.error_output;
}

TEST(guarded_pool_limits, too_many_mappings_is_an_error_that_says_so) {
  std::size_t max_mappings = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> max_mappings;
  if (max_mappings == 0 || max_mappings > 100'000 || stack_test::sanitized) {
    GTEST_SKIP() << "vm.max_map_count is " << max_mappings << ", or a sanitizer needs mappings itself";
  }
  const stack_test::child_result child = in_child([] {
    guarded_pool_options options;
    options.guard = guard_kind::protected_pages;
    options.guard_size = 4 * KiB;
    guarded_pool pool(options);
    std::vector<stack> stacks;
    CHECK_OR_RETURN(fill(stacks, 100'000, pool, 16 * KiB) == stack_error::mapping_limit, 1);
    CHECK_OR_RETURN(stacks.size() > 10'000, 2);
    CHECK_OR_RETURN(is_guarded(stacks.back(), options.guard_size) && is_guarded(stacks.front(), options.guard_size), 3);
    pool.deallocate(stacks.back());
    CHECK_OR_RETURN(pool.allocate(16 * KiB).value.limit() == stacks.back().limit(), 4);
    CHECK_OR_RETURN(pool.allocate(16 * KiB).error == stack_error::mapping_limit, 5);
    for (const stack& each : stacks) {
      pool.deallocate(each);
    }
    return 0;
  });
  EXPECT_TRUE(child.exited_with(0)) << child.status << " " << child.error_output;
}

TEST(guarded_pool_limits, an_address_space_limit_is_an_error_and_running_code_goes_on) {
  if (stack_test::sanitized) {
    GTEST_SKIP() << "a sanitizer needs address space itself";
  }
  const stack_test::child_result child = in_child([] {
    guarded_pool pool;
    const stack running = pool.allocate(64 * KiB).value;
    bool went_on = false;
    int code = 0;
    stack_test::run_on(running, [&] {
      code = [&] {
        const rlim_t limit = status_bytes("VmSize") + 200 * MiB;
        const rlimit limits{limit, limit};
        CHECK_OR_RETURN(setrlimit(RLIMIT_AS, &limits) == 0, 1);
        guarded_pool other;
        std::vector<stack> stacks;
        CHECK_OR_RETURN(fill(stacks, 100'000, other, 64 * KiB) == stack_error::address_space, 2);
        CHECK_OR_RETURN(stacks.size() > 1000, 3);  // smaller slabs were tried before giving up
        std::memset(stacks.back().limit(), 1, stacks.back().size());
        stack_test::run_on(stacks.back(), [&] { went_on = true; });
        for (const stack& each : stacks) {
          other.deallocate(each);
        }
        CHECK_OR_RETURN(other.allocate(64 * KiB).value.limit() == stacks.back().limit(), 4);
        other.deallocate(stacks.back());
        return 0;
      }();
    });
    pool.deallocate(running);
    CHECK_OR_RETURN(went_on || code != 0, 5);
    return code;
  });
  EXPECT_TRUE(child.exited_with(0)) << child.status << " " << child.error_output;
}

TEST(guarded_pool_limits, an_exhausted_address_space_is_an_error) {
  if (stack_test::sanitized) {
    GTEST_SKIP() << "a sanitizer ends the process when address space is exhausted";
  }
  const stack_test::child_result child = in_child([] {
    guarded_pool pool;
    std::vector<stack> stacks;
    CHECK_OR_RETURN(fill(stacks, 10'000, pool, 64 * KiB * MiB) == stack_error::address_space, 1);
    const stack small = pool.allocate(64 * KiB).value;  // there is still room for a small slab
    CHECK_OR_RETURN(small, 2);
    pool.deallocate(small);
    for (const stack& each : stacks) {
      pool.deallocate(each);
    }
    return 0;
  });
  EXPECT_TRUE(child.exited_with(0)) << child.status << " " << child.error_output;
}

// Under the default vm.max_map_count, which is less than two mappings for each of a twentieth of the stacks.
TEST(guarded_pool_limits, a_million_guarded_stacks_exist_at_once) {
  const std::size_t count = stack_test::sanitized ? 20'000 : 1'000'000;
  guarded_pool_options options;
  guarded_pool pool(options);
  const std::size_t mappings = count_mappings();
  const std::size_t tables = status_bytes("VmPTE");
  std::vector<stack> stacks(count);
  for (stack& each : stacks) {
    const pirn::stack_result got = pool.allocate(64 * KiB);
    if (!got) {
      GTEST_FAIL() << "after " << &each - stacks.data() << ": " << to_string(got.error);
    }
    each = got.value;
  }
  const guarded_pool_statistics stats = pool.statistics();
  EXPECT_EQ(stats.in_use, count);
  if (stats.classes[0].protected_guards != 0) {
    GTEST_FAIL() << "guards are not lightweight here";
  }
  EXPECT_LT(count_mappings(), mappings + 100);
  for (std::size_t i = 0; i < count; i += count / 100) {
    EXPECT_FALSE(readable(static_cast<char*>(stacks[i].limit()) - 1));
    EXPECT_FALSE(readable(guard_of(stacks[i], options.guard_size)));
    EXPECT_TRUE(readable(stacks[i].limit()));
  }
  RecordProperty("page_table_bytes_per_stack", std::to_string((status_bytes("VmPTE") - tables) / count));
  for (const stack& each : stacks) {
    pool.deallocate(each);
  }
  EXPECT_EQ(pool.statistics().in_use, 0u);
}

TEST(guarded_pool_limits, a_cache_makes_many_guards_at_once_and_each_is_there) {
  guarded_pool pool;
  guarded_pool::cache cache(pool, 64 * KiB, 1024);
  std::vector<stack> stacks(1000);
  std::size_t most_at_hand = 0;
  for (stack& each : stacks) {
    const pirn::stack_result got = cache.allocate();
    ASSERT_TRUE(got) << to_string(got.error);
    each = got.value;
    most_at_hand = std::max(most_at_hand, cache.size());
  }
  const guarded_pool_statistics stats = pool.statistics();
  EXPECT_EQ(stats.in_use, stacks.size());
  EXPECT_EQ(stats.idle, cache.size());
  EXPECT_EQ(stats.classes[0].lightweight_guards + stats.classes[0].protected_guards, stats.in_use + stats.idle);
  if (stats.classes[0].protected_guards == 0) {
    EXPECT_GE(most_at_hand, 60u);
  }
  std::set<void*> limits;
  for (const stack& each : stacks) {
    limits.insert(each.limit());
    EXPECT_FALSE(readable(static_cast<char*>(each.limit()) - 1));
    EXPECT_FALSE(readable(guard_of(each, pool.options().guard_size)));
    EXPECT_TRUE(readable(each.limit()));
  }
  EXPECT_EQ(limits.size(), stacks.size());
  for (const stack& each : stacks) {
    cache.deallocate(each);
  }
}

TEST(guarded_pool_limits, guards_that_cannot_be_made_at_once_are_made_one_by_one) {
  const stack_test::child_result child = in_child([] {
    CHECK_OR_RETURN(pretend_old_kernel(SYS_process_madvise, 3), unsupported);
    guarded_pool pool;
    guarded_pool::cache cache(pool, 64 * KiB, 1024);
    std::vector<stack> stacks(600);
    for (stack& each : stacks) {
      each = cache.allocate().value;
      CHECK_OR_RETURN(each, 1);
      CHECK_OR_RETURN(is_guarded(each, pool.options().guard_size), 2);
    }
    const guarded_pool_statistics stats = pool.statistics();
    CHECK_OR_RETURN(stats.in_use == 600, 3);
    for (const stack& each : stacks) {
      cache.deallocate(each);
    }
    return 0;
  });
  if (child.exited_with(unsupported)) {
    GTEST_SKIP() << "no seccomp filters here";
  }
  EXPECT_TRUE(child.exited_with(0)) << child.status << " " << child.error_output;
}

TEST(guarded_pool_limits, a_cache_makes_none_ahead_in_a_pool_with_a_limit) {
  guarded_pool_options options;
  options.max_stacks = 400;
  guarded_pool pool(options);
  guarded_pool::cache cache(pool, 64 * KiB, 1024);
  std::vector<stack> stacks(400);
  for (stack& each : stacks) {
    each = cache.allocate().value;
    EXPECT_EQ(cache.size(), 0u);
  }
  EXPECT_EQ(cache.allocate().error, pirn::stack_error::pool_limit);
  for (const stack& each : stacks) {
    cache.deallocate(each);
  }
}

TEST(guarded_pool_memory, the_stacks_idle_the_longest_give_theirs_back) {
  guarded_pool_options options;
  options.idle_high_water = 40 * page();
  guarded_pool pool(options);
  constexpr int count = 100;
  stack stacks[count];
  for (stack& each : stacks) {
    each = pool.allocate(64 * KiB).value;
    std::memset(static_cast<char*>(each.top()) - KiB, 1, KiB);
  }
  for (const stack& each : stacks) {
    pool.deallocate(each);
  }
  std::size_t resident = 0;
  for (const stack& each : stacks) {
    resident += resident_bytes(each);
  }
  EXPECT_LE(resident, options.idle_high_water);
  EXPECT_GE(resident, options.idle_high_water / 2);
  EXPECT_EQ(resident_bytes(stacks[0]), 0u);
  EXPECT_EQ(resident_bytes(stacks[count - 1]), page());
  for (const stack& each : stacks) {
    EXPECT_FALSE(readable(static_cast<char*>(each.limit()) - 1)) << "guards stay";
    EXPECT_FALSE(readable(guard_of(each, options.guard_size)));
  }
  EXPECT_EQ(pool.allocate(64 * KiB).value.limit(), stacks[count - 1].limit()) << "the warmest first";
  pool.deallocate(stacks[count - 1]);
  EXPECT_EQ(pool.statistics().classes[0].idle, static_cast<std::size_t>(count));
  EXPECT_GE(pool.statistics().classes[0].idle_cold, 60u);
}

TEST(guarded_pool_memory, deep_stacks_count_for_what_they_hold) {
  guarded_pool_options options;
  options.idle_high_water = 64 * page();
  guarded_pool pool(options);
  stack stacks[32];
  for (stack& each : stacks) {
    each = pool.allocate(64 * KiB).value;
    std::memset(each.limit(), 1, each.size());
  }
  for (const stack& each : stacks) {
    pool.deallocate(each);
  }
  std::size_t resident = 0;
  for (const stack& each : stacks) {
    resident += resident_bytes(each);
  }
  EXPECT_LE(resident, options.idle_high_water);
  EXPECT_EQ(pool.statistics().classes[0].high_water / page(), stacks[0].size() / page());
}

TEST(guarded_pool_memory, prefaulted_memory_is_there_and_stays) {
  guarded_pool_options options;
  options.prefault = 3 * page();
  guarded_pool pool(options);
  const stack value = pool.allocate(64 * KiB).value;
  EXPECT_EQ(resident_bytes(value), 3 * page());
  std::memset(value.limit(), 1, value.size());
  pool.deallocate(value);
  pool.trim();
  EXPECT_EQ(resident_bytes(value), 3 * page());
}

TEST(guarded_pool_memory, high_water_of_a_class_outlives_its_stacks) {
  guarded_pool pool;
  const stack value = pool.allocate(64 * KiB).value;
  std::memset(static_cast<char*>(value.top()) - 20 * KiB, 1, 20 * KiB);
  EXPECT_GE(high_water(value), 20 * KiB);
  EXPECT_LE(high_water(value), 24 * KiB);
  pool.deallocate(value);
  pool.trim();
  EXPECT_EQ(high_water(value), 0u);
  EXPECT_GE(pool.statistics().classes[0].high_water, 20 * KiB);
  EXPECT_LE(pool.statistics().classes[0].high_water, 24 * KiB);
}

}  // namespace
