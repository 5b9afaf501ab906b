#include "pirn/stack/guarded_pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace {

using pirn::guarded_pool;

TEST(guarded_pool, hands_out_what_was_asked_for) {
  guarded_pool pool;
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{4096}, std::size_t{65536}, std::size_t{100000}, std::size_t{8} << 20}) {
    const pirn::stack_result got = pool.allocate(size);
    ASSERT_TRUE(got) << to_string(got.error);
    EXPECT_GE(got.value.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(got.value.top()) % 16, 0u);
    std::memset(got.value.limit(), 0x5a, got.value.size());
    pool.deallocate(got.value);
  }
}

TEST(guarded_pool, cache_is_last_in_first_out) {
  guarded_pool pool;
  guarded_pool::cache cache(pool, 65536, 8);
  const pirn::stack a = cache.allocate().value;
  const pirn::stack b = cache.allocate().value;
  cache.deallocate(a);
  cache.deallocate(b);
  EXPECT_EQ(cache.allocate().value.limit(), b.limit());
  EXPECT_EQ(cache.allocate().value.limit(), a.limit());
  cache.deallocate(a);
  cache.deallocate(b);
}
}  // namespace
