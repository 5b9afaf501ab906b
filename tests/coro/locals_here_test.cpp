// coroutine_local::get() without a yield object: the coroutine is found by the caller's stack.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/coroutine_pool.hpp"
#include "pirn/coro/detail/locals_here.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/stack/expert/frame_buffer.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"

namespace {

const pirn::coroutine_local<int> number(5);

[[gnu::noinline]] int& deep_number(int depth) { return depth == 0 ? number.get() : deep_number(depth - 1); }

// ---- the kinds that are found --------------------------------------------------------------------------------------

struct on_default_pool {
  template <class Body>
  static auto begun(Body body) {
    pirn::coroutine<void()> made(std::move(body));
    made.resume();
    return made;
  }
};
struct on_cache {
  template <class Body>
  static auto begun(Body body) {
    static pirn::guarded_pool pool;
    static pirn::guarded_pool::cache cache(pool, 32768);
    pirn::coroutine<void()> made(cache, std::move(body));
    made.resume();
    return made;
  }
};
struct with_aligned_body {
  template <class Body>
  static auto begun(Body body) {
    struct alignas(256) aligned {
      Body inner;
      void operator()(pirn::coroutine<void()>::yield& yield) { inner(yield); }
    };
    pirn::coroutine<void()> made(aligned{std::move(body)});
    made.resume();
    return made;
  }
};
struct after_reset {
  template <class Body>
  static auto begun(Body body) {
    pirn::coroutine<void()> made([](auto& yield) {
      number.get() = 77;
      yield();
    });
    made.resume();
    made.reset(std::move(body));
    made.resume();
    return made;
  }
};
struct as_job {
  template <class Body>
  static auto begun(Body body) {
    static pirn::coroutine_pool pool;
    return pool.start(std::move(body));
  }
};

template <class Kind>
class locals_here_test : public testing::Test {};
using kinds = testing::Types<on_default_pool, on_cache, with_aligned_body, after_reset, as_job>;
TYPED_TEST_SUITE(locals_here_test, kinds);

TYPED_TEST(locals_here_test, a_function_deep_in_a_coroutine_finds_the_values_of_its_yield_object) {
  auto one = TypeParam::begun([](auto& yield) {
    EXPECT_EQ(number.find(), nullptr);
    int& mine = deep_number(10);
    EXPECT_EQ(mine, 5);
    EXPECT_EQ(&mine, &number.get(yield));
    EXPECT_EQ(&mine, number.find());
    mine = 6;
    yield();
    EXPECT_EQ(deep_number(3), 6);
  });
  auto two = TypeParam::begun([](auto& yield) {
    EXPECT_EQ(deep_number(0), 5);
    number.get() = 8;
    yield();
    EXPECT_EQ(deep_number(0), 8);
  });
  one.resume();
  std::thread([&two] { two.resume(); }).join();
  EXPECT_TRUE(one.done());
  EXPECT_TRUE(two.done());
}

TYPED_TEST(locals_here_test, the_innermost_coroutine_counts) {
  auto outer = TypeParam::begun([](auto& yield) {
    number.get() = 1;
    auto inner = TypeParam::begun([](auto& yields) {
      EXPECT_EQ(number.find(), nullptr);
      number.get() = 2;
      yields();
      EXPECT_EQ(number.get(), 2);
    });
    EXPECT_EQ(number.get(), 1);
    yield();
    inner.resume();
    EXPECT_TRUE(inner.done());
    EXPECT_EQ(number.get(), 1);
  });
  outer.resume();
  EXPECT_TRUE(outer.done());
}

TYPED_TEST(locals_here_test, the_next_user_of_a_stack_finds_nothing) {
  for (int i = 0; i < 3; ++i) {
    auto one = TypeParam::begun([](auto&) {
      EXPECT_EQ(number.find(), nullptr);
      number.get() = 9;
    });
    EXPECT_TRUE(one.done());
  }
}

TYPED_TEST(locals_here_test, destructors_that_an_unwind_runs_find_their_values) {
  struct looks {
    int* to;
    ~looks() { *to = *number.find(); }
  };
  int seen = 0;
  {
    auto one = TypeParam::begun([&seen](auto& yield) {
      const looks last{&seen};
      number.get() = 12;
      yield();
    });
  }
  EXPECT_EQ(seen, 12);
}

// ---- bodies in frames of a coroutine -------------------------------------------------------------------------------

TYPED_TEST(locals_here_test, a_body_in_a_frame_does_not_get_the_values_of_the_coroutine_around_it) {
  auto outer = TypeParam::begun([](auto& yield) {
    number.get() = 1;
    {
      pirn::frame_buffer<16384> buffer;
      pirn::coroutine<void()> inner(buffer, [](auto& yields) {
        EXPECT_EQ(number.find(), nullptr);
        EXPECT_THROW(static_cast<void>(number.get()), std::logic_error);
        number.get(yields) = 3;
        EXPECT_EQ(number.get(yields), 3);
      });
      inner.resume();
      EXPECT_EQ(number.get(), 1);
    }
    yield();
    EXPECT_EQ(number.get(), 1);
  });
  outer.resume();
  EXPECT_TRUE(outer.done());
}

// ---- code that is in no such coroutine -----------------------------------------------------------------------------

TEST(locals_nowhere_test, outside_of_coroutines_there_is_no_value) {
  EXPECT_EQ(number.find(), nullptr);
  EXPECT_THROW(static_cast<void>(number.get()), std::logic_error);
  std::thread([] {
    EXPECT_EQ(number.find(), nullptr);
    EXPECT_THROW(static_cast<void>(number.get()), std::logic_error);
  }).join();
}

TEST(locals_nowhere_test, a_generator_has_no_values_and_its_consumer_keeps_its_own) {
  pirn::coroutine<void()> consumer([](auto& yield) {
    number.get() = 4;
    const auto body = [](auto& yields) {
      EXPECT_EQ(number.find(), nullptr);
      yields(1);
      EXPECT_THROW(static_cast<void>(number.get()), std::logic_error);
      yields(2);
    };
    int sum = 0;
    for (const int each : pirn::generator<int>(body)) {
      sum += each;
      EXPECT_EQ(number.get(), 4);
    }
    EXPECT_EQ(sum, 3);
    yield();
  });
  consumer.resume();
  consumer.resume();
  EXPECT_TRUE(consumer.done());
}

TEST(locals_nowhere_test, a_pool_with_other_stacks_at_the_addresses_of_one_that_has_gone_is_looked_at_anew) {
  const auto body = [](auto& yield) {
    EXPECT_EQ(number.find(), nullptr);
    EXPECT_EQ(&number.get(), &number.get(yield));
  };
  for (const std::size_t size :
       {std::size_t{1} << 20, std::size_t{1} << 15, std::size_t{1} << 18, std::size_t{1} << 14}) {
    pirn::guarded_pool pool;
    std::vector<pirn::coroutine<void()>> all;
    for (int i = 0; i < 8; ++i) {
      all.emplace_back(pool, size, body);
      all.back().resume();
    }
  }
}

TEST(locals_nowhere_test, a_stack_that_was_given_back_names_no_owner) {
  pirn::guarded_pool pool;
  pirn::stack bounds;
  const auto given_back = [&](const auto& use) {
    use();
    const pirn::stack_result again = pool.allocate(pirn::default_stack_size);
    ASSERT_EQ(again.value.top(), bounds.top());
    EXPECT_EQ(pirn::detail::owner_on(again.value), nullptr);
    pool.deallocate(again.value);
  };
  const auto has_some = [&bounds](auto&) {
    bounds = pirn::this_stack::bounds();
    EXPECT_NE(pirn::detail::owner_on(bounds), nullptr);
    number.get() = 3;
  };
  given_back([&] { pirn::coroutine<void()>(pool, has_some).resume(); });
  given_back([&] { pirn::coroutine<void()>(pool, has_some); });  // has not begun
  given_back([&] {
    pirn::coroutine<void()> unwound(pool, [](auto& yield) { yield(); });
    unwound.resume();
  });
  given_back([&] { pirn::coroutine_pool(pool).start(has_some); });
}

TEST(locals_nowhere_test, a_coroutine_with_a_larger_body_on_the_same_stack_has_its_own) {
  pirn::guarded_pool pool;
  pirn::coroutine<void()>(pool, [](auto&) { number.get() = 1; }).resume();
  std::array<std::uintptr_t, 40> large{};
  pirn::coroutine<void()> second(pool, [large](auto& yield) {
    EXPECT_EQ(number.find(), nullptr);
    EXPECT_EQ(&number.get(), &number.get(yield));
    EXPECT_EQ(large[7], 0u);
  });
  second.resume();
  EXPECT_TRUE(second.done());
}

TEST(locals_nowhere_test, a_coroutine_with_a_huge_body_has_values_by_its_yield_object) {
  std::array<char, 10'000> huge{};
  pirn::coroutine<void()> one([huge](auto& yield) {
    EXPECT_EQ(number.find(), nullptr);
    EXPECT_EQ(number.get(yield), 5 + huge[5]);
  });
  one.resume();
  EXPECT_TRUE(one.done());
}

TEST(locals_nowhere_test, the_owner_of_another_stack_is_no_owner) {
  alignas(16) std::byte memory[256] = {};
  const pirn::stack on(memory, memory + sizeof memory);
  auto* const owner = new (memory + 128) pirn::detail::locals_owner(memory);
  EXPECT_EQ(pirn::detail::owner_on(on), owner);
  owner->gone();
  EXPECT_EQ(pirn::detail::owner_on(on), nullptr);
  new (memory + 128) pirn::detail::locals_owner(memory + 16);
  EXPECT_EQ(pirn::detail::owner_on(on), nullptr);
}

}  // namespace
