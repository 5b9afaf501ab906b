// coroutine_local in copied coroutines: with the yield object and without, moved ones, many stacks, stacks that have
// gone.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "pirn/context/arch.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"
#include "pirn/stack/detail/shared_stacks.hpp"
#include "pirn/stack/expert/copy_stack.hpp"

namespace {

const pirn::coroutine_local<int> number(5);
const pirn::coroutine_local<std::shared_ptr<int>> held;

[[gnu::noinline]] int& deep_number(int depth) { return depth == 0 ? number.get() : deep_number(depth - 1); }

using copied_void = pirn::copied_coroutine<void()>;

TEST(copied_locals, the_yield_object_has_the_same_values) {
  pirn::copy_stack shared(65536);
  const auto body = [](auto& yield) {
    EXPECT_EQ(number.find(), nullptr);
    EXPECT_EQ(number.find(yield), nullptr);
    EXPECT_EQ(number.get(yield)++, 5);
    yield();
    EXPECT_EQ(&number.get(yield), &number.get());
    EXPECT_EQ(number.find(yield), number.find());
    EXPECT_EQ(deep_number(2), 6);
  };
  copied_void one(shared, body);
  copied_void two(shared, body);
  one.resume();
  two.resume();
  one.resume();
  two.resume();
  EXPECT_TRUE(one.done());
  EXPECT_TRUE(two.done());
}

TEST(copied_locals, values_move_with_a_suspended_coroutine) {
  pirn::copy_stack shared(65536);
  std::vector<copied_void> all;
  for (int i = 0; i < 100; ++i) {
    all.emplace_back(shared, [i](auto& yield) {
      number.get() = i;
      yield();
      EXPECT_EQ(number.get(), i);
      number.get() = 1000 + i;
      yield();
      EXPECT_EQ(number.get(), 1000 + i);
    });
    all.back().resume();
  }
  std::vector<copied_void> others;
  for (copied_void& each : all) {
    others.push_back(std::move(each));
    others.back().resume();
  }
  others[3] = std::move(others[99]);
  others.pop_back();
  for (copied_void& each : others) {
    each.resume();
    EXPECT_TRUE(each.done());
  }
  EXPECT_FALSE(shared.variables().any());
}

TEST(copied_locals, variables_lie_in_no_image) {
  struct uses {
    [[gnu::noinline]] static void none() { asm volatile(""); }
    [[gnu::noinline]] static void some() { ++number.get(); }
  };
  pirn::copy_stack shared(65536);
  const auto size_with = [&shared](void (*use)()) {
    copied_void one(shared, [use](auto& yield) {
      use();
      yield();
      use();
    });
    copied_void two(shared, [](auto&) {});
    one.resume();
    two.resume();
    one.resume();
    return one.statistics().largest;
  };
  EXPECT_EQ(size_with(&uses::some), size_with(&uses::none));
  EXPECT_NE(size_with(&uses::none), 0u);
}

TEST(copied_locals, each_of_many_copy_stacks_is_found) {
  constexpr std::size_t many = 900;
  std::vector<std::unique_ptr<pirn::copy_stack>> stacks;
  std::vector<copied_void> all;
  for (std::size_t i = 0; i < many; ++i) {
    const std::size_t size = std::size_t{16384} << i % 5;
    stacks.push_back(std::make_unique<pirn::copy_stack>(size));
    ASSERT_EQ(stacks.back()->error(), pirn::stack_error::none);
    all.emplace_back(*stacks.back(), [i](auto& yield) {
      number.get() = static_cast<int>(i);
      yield();
      EXPECT_EQ(number.get(), static_cast<int>(i));
    });
  }
  for (int turn = 0; turn < 2; ++turn) {
    for (copied_void& each : all) {
      each.resume();
    }
  }
}

TEST(copied_locals, a_copy_stack_that_has_gone_is_not_found_again) {
  std::optional<pirn::copy_stack> first(std::in_place, 65536);
  const void* const place = first->memory().limit();
  copied_void(*first, [](auto&) { number.get() = 1; }).resume();
  first.reset();
  pirn::copy_stack second(65536);
  if (second.memory().limit() != place) {
    GTEST_SKIP() << "the system has given the second stack another place (an emulator does)";
  }
  copied_void one(second, [](auto& yield) { EXPECT_EQ(&number.get(), &number.get(yield)); });
  one.resume();
  EXPECT_TRUE(one.done());
  EXPECT_EQ(pirn::detail::shared_stacks::at(reinterpret_cast<std::uintptr_t>(place)).values, &second.variables());
}

PIRN_NONE void entry_without_end(void* pc, void* sp, void* fp, pirn::arch::word on, pirn::arch::word owned,
                                 pirn::arch::word, pirn::arch::word) {
  auto& shared = *reinterpret_cast<pirn::copy_stack*>(on);
  shared.entered(pc, sp, fp);
  held.get() = *reinterpret_cast<std::shared_ptr<int>*>(owned);
  pirn::arch::word none[pirn::arch::value_words] = {};
  shared.suspend(none);
  shared.finish(none);
}

TEST(copied_locals, values_of_a_context_end_with_its_object_at_the_latest) {
  const auto owned = std::make_shared<int>(1);
  pirn::copy_stack shared(65536);
  {
    pirn::copied_context one(shared, &entry_without_end);
    pirn::arch::word words[pirn::arch::value_words] = {reinterpret_cast<pirn::arch::word>(&shared),
                                                       reinterpret_cast<pirn::arch::word>(&owned)};
    ASSERT_EQ(one.bring_in(), pirn::stack_error::none);
    EXPECT_TRUE(one.run(words));
    one.settle();
    EXPECT_EQ(owned.use_count(), 2);
  }
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(copied_locals, values_of_a_context_end_with_its_entry_function) {
  const auto owned = std::make_shared<int>(1);
  pirn::copy_stack shared(65536);
  pirn::copied_context one(shared, &entry_without_end);
  for (const bool suspends : {true, false}) {
    pirn::arch::word words[pirn::arch::value_words] = {reinterpret_cast<pirn::arch::word>(&shared),
                                                       reinterpret_cast<pirn::arch::word>(&owned)};
    ASSERT_EQ(one.bring_in(), pirn::stack_error::none);
    EXPECT_EQ(one.run(words), suspends);
    one.settle();
  }
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
