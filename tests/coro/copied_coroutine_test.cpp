// Coroutines whose frames are copied between one shared stack and their images: order of resumes, errors, and misuse.

#include "pirn/coro/expert/copied_coroutine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "coro/misuse_support.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/stack/expert/frame_buffer.hpp"

namespace {

using pirn::copied_coroutine;
using pirn::copy_stack;
using pirn::stack_error;
using pirn_test::logic_error_of;
using pirn_test::says;

#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
constexpr std::size_t many = 200;
#else
constexpr std::size_t many = 5000;
#endif
constexpr std::size_t stack_size = std::size_t{1} << 18;

TEST(copied_coroutine_test, takes_over_one_that_its_own_body_holds) {
  copy_stack stack(stack_size);
  auto second = std::make_unique<copied_coroutine<int()>>(stack, [](auto& yield) {
    yield(2);
    return 3;
  });
  copied_coroutine<int()>& next = *second;
  copied_coroutine<int()> head(stack, [held = std::move(second)](auto& yield) mutable {
    const auto owned = std::move(held);
    yield(1);
    return 0;
  });
  EXPECT_EQ(head.resume(), 1);
  EXPECT_EQ(next.resume(), 2);
  head = std::move(next);
  EXPECT_EQ(head.resume(), 3);
  EXPECT_TRUE(head.done());
}

// ---- many on one stack --------------------------------------------------------------------------------------------

int descend(copied_coroutine<int(int)>::yield& yield, int depth, int number) {
  std::array<int, 16> mine;
  mine.fill(number * 100 + depth);
  if (depth == 0) {
    return yield(number);
  }
  const int below = descend(yield, depth - 1, number);
  for (const int each : mine) {
    if (each != number * 100 + depth) {
      throw std::runtime_error("a frame has changed");
    }
  }
  return below;
}

TEST(copied_coroutine_test, many_in_random_order_with_random_frames) {
  copy_stack shared(stack_size);
  std::vector<copied_coroutine<int(int)>> all;
  std::vector<int> sums(many);
  std::mt19937 random(7);
  for (std::size_t i = 0; i < many; ++i) {
    all.emplace_back(shared, [depth = static_cast<int>(random() % 30), i](auto& yield, int first) {
      int sum = first;
      for (int turn = 0;; ++turn) {
        const std::string text = std::to_string(sum) + std::string(40, 'x');
        const int got = descend(yield, (depth + turn) % 30, sum);
        if (text != std::to_string(sum) + std::string(40, 'x')) {
          throw std::runtime_error("a string has changed");
        }
        if (got < 0) {
          return static_cast<int>(i);
        }
        sum += got;
      }
    });
  }
  for (std::size_t step = 0; step < 10 * many; ++step) {
    const std::size_t i = random() % many;
    const int sent = static_cast<int>(random() % 100);
    sums[i] += sent;
    ASSERT_EQ(all[i].resume(sent), sums[i]);
  }
  std::shuffle(all.begin() + many / 2, all.end(), random);
  for (std::size_t i = 0; i < many / 2; ++i) {
    if (sums[i] != 0) {
      ASSERT_EQ(all[i].resume(-1), static_cast<int>(i));
      ASSERT_TRUE(all[i].done());
    }
  }
}  // the others are unwound

TEST(copied_coroutine_test, alone_on_its_stack_it_is_never_copied) {
  copy_stack shared(stack_size);
  copied_coroutine<int()> one(shared, [](auto& yield) {
    for (int i = 0;; ++i) {
      yield(i);
    }
    return 0;
  });
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(one.resume(), i);
  }
  EXPECT_EQ(one.statistics().copies, 0u);
  EXPECT_EQ(one.capacity(), 0u);
}

TEST(copied_coroutine_test, an_object_is_48_bytes_and_a_small_image_is_small) {
  if (std::is_empty_v<pirn::sanitizer_state>) {
    EXPECT_EQ(sizeof(copied_coroutine<int(int)>), sizeof(void*) == 8 ? 48u : sizeof(copied_coroutine<int(int)>));
  }
  copy_stack shared(stack_size);
  const auto counts = [](auto& yield) {
    for (int i = 0;; ++i) {
      yield(i);
    }
    return 0;
  };
  copied_coroutine<int()> one(shared, counts), other(shared, counts);
  one.resume();
  other.resume();
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
  EXPECT_LE(one.statistics().largest, 300u);
#endif
  EXPECT_EQ(one.statistics().copies, 1u);
  EXPECT_EQ(one.statistics().bytes, one.statistics().largest);
}

// ---- no memory for an image ---------------------------------------------------------------------------------------

struct refusing {
  void* allocate(std::size_t bytes) noexcept { return refuses ? nullptr : std::malloc(bytes); }
  void deallocate(void* where, std::size_t) noexcept { std::free(where); }
  bool refuses = false;
};

TEST(copied_coroutine_test, no_memory_is_an_error_value_and_everybody_goes_on) {
  refusing images;
  copy_stack shared(stack_size, {.images = images});
  const auto body = [](auto& yield, int first) -> std::string {
    std::string text = std::to_string(first);
    for (;;) {
      text += std::to_string(yield(text));
    }
  };
  copied_coroutine<std::string(int)> a(shared, body), b(shared, body), c(shared, body);
  EXPECT_EQ(a.resume(1), "1");
  EXPECT_EQ(b.resume(2), "2");
  images.refuses = true;  // b lies there and has no buffer
  for (int i = 0; i < 3; ++i) {
    const auto refused = a.try_resume(9);
    EXPECT_FALSE(refused);
    EXPECT_EQ(refused.error(), stack_error::no_image_memory);
  }
  try {
    c.resume(3);
    ADD_FAILURE();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), stack_error::no_image_memory);
    EXPECT_EQ(error.code(), std::errc::not_enough_memory);
  }
  EXPECT_THROW(a.reset(), std::system_error);
  EXPECT_FALSE(a.done());
  EXPECT_EQ(b.resume(5), "25");
  images.refuses = false;
  auto got = a.try_resume(4);
  ASSERT_TRUE(got);
  EXPECT_EQ(got.value(), "14");
  EXPECT_EQ(c.resume(3), "3");
  EXPECT_EQ(b.resume(6), "256");
}

TEST(copied_coroutine_test, try_resume_carries_whatever_resume_returns) {
  copy_stack shared(stack_size);
  int object = 1;
  copied_coroutine<int&()> reference(shared, [&object](auto& yield) -> int& {
    yield(object);
    return object;
  });
  EXPECT_EQ(&reference.try_resume().value(), &object);
  copied_coroutine<void()> nothing(shared, [](auto& yield) { yield(); });
  EXPECT_TRUE(nothing.try_resume());
  copied_coroutine<std::unique_ptr<int>()> owner(
      shared, [](auto&) -> std::unique_ptr<int> { return std::make_unique<int>(4); });
  EXPECT_EQ(*std::move(owner.try_resume().value()), 4);
  copied_coroutine<int()> throws(shared, [](auto&) -> int { throw 1; });
  EXPECT_THROW(static_cast<void>(throws.try_resume()), int);
  EXPECT_TRUE(throws.done());
}

// ---- permitted resumes ----------------------------------------------------------------------------------------------

TEST(copied_coroutine_test, one_on_the_same_stack_cannot_be_resumed_from_within) {
  copy_stack shared(stack_size), elsewhere(stack_size);
  copied_coroutine<int()> other(shared, [](auto& yield) {
    yield(1);
    return 2;
  });
  copied_coroutine<int()> far(elsewhere, [&other](auto&) { return other.try_resume() ? 1 : 0; });
  copied_coroutine<int()> one(shared, [&](auto& yield) {
    EXPECT_EQ(other.try_resume().error(), stack_error::stack_in_use);
    EXPECT_THROW(other.resume(), std::system_error);
    EXPECT_EQ(far.resume(), 0);  // nor by way of another stack
    copied_coroutine<int()> inner(elsewhere, [](auto& yields) {
      yields(5);
      return 6;
    });
    EXPECT_EQ(inner.resume(), 5);
    yield(1);
    return inner.resume();
  });
  EXPECT_EQ(one.resume(), 1);
  EXPECT_EQ(other.resume(), 1);
  EXPECT_EQ(one.resume(), 6);
  EXPECT_EQ(other.resume(), 2);
}

TEST(copied_coroutine_test, one_is_created_and_dropped_within_another) {
  copy_stack shared(stack_size);
  std::vector<copied_coroutine<int()>> made;
  copied_coroutine<int()> maker(shared, [&](auto& yield) {
    for (int i = 0; i < 3; ++i) {
      made.emplace_back(shared, [held = std::make_unique<int>(i)](auto&) { return *held; });
      yield(0);
    }
    made.clear();  // not begun: nothing to unwind
    return 1;
  });
  maker.resume();
  EXPECT_EQ(made[0].resume(), 0);
  maker.resume();
  EXPECT_EQ(made[1].resume(), 1);
  maker.resume();
  made.erase(made.begin(), made.begin() + 2);
  EXPECT_EQ(maker.resume(), 1);
}

TEST(copied_coroutine_test, misuse_is_said) {
  copy_stack shared(stack_size);
  copied_coroutine<int()> none;
  EXPECT_TRUE(none.done());
  EXPECT_TRUE(says(logic_error_of([&] { none.resume(); }), "empty"));
  EXPECT_TRUE(says(logic_error_of([&] { none.reset([](auto&) { return 1; }); }), "no stack"));
  copied_coroutine<int()>* self = nullptr;
  copied_coroutine<int()>::yield* leaked = nullptr;
  std::string message;
  copied_coroutine<int()> one(shared, [&](auto& yield) {
    leaked = &yield;
    message = logic_error_of([&] { self->resume(); }) + logic_error_of([&] { self->reset(); });
    yield(1);
    return 2;
  });
  self = &one;
  EXPECT_EQ(one.resume(), 1);
  EXPECT_TRUE(says(message, "resumed while it is running"));
  EXPECT_TRUE(says(message, "reset while it is running"));
#if !defined(PIRN_ASAN)  // which reports the access
  EXPECT_TRUE(says(logic_error_of([&] { (*leaked)(1); }), "yield called outside"));
#endif
  EXPECT_EQ(one.resume(), 2);
  EXPECT_TRUE(says(logic_error_of([&] { one.resume(); }), "resumed after its end"));
  copy_stack broken(0);
  EXPECT_THROW(copied_coroutine<int()>(broken, [](auto&) { return 1; }), std::system_error);
}

TEST(copied_coroutine_test, an_inner_one_in_its_frame_may_not_yield_it) {
  copy_stack shared(stack_size, {.check = pirn::copy_stack_check::protect});
  copied_coroutine<int()> outer(shared, [](auto& yield) {
    pirn::frame_buffer<65536> room;
    pirn::coroutine<int()> inner(room, [&yield](auto& yields) {
      yields(1);
      yield(-1);  // nothing below `room` would be saved
      return -1;
    });
    yield(inner.resume());
    EXPECT_TRUE(says(logic_error_of([&] { inner.resume(); }), "yield called outside"));
    EXPECT_TRUE(inner.done());
    yield(2);
    return 3;
  });
  copied_coroutine<int()> other(shared, [](auto& yield) {
    yield(10);
    yield(11);
    return 12;
  });
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(outer.resume(), i);
    EXPECT_EQ(other.resume(), 9 + i);
  }
}

using copied_coroutine_death_test = testing::Test;

TEST(copied_coroutine_death_test, what_cannot_be_undone_is_named) {
  const auto moves = [] {
    copy_stack shared(stack_size);
    copied_coroutine<int()> one, other;
    one = copied_coroutine<int()>(shared, [&](auto&) {
      other = std::move(one);
      return 1;
    });
    one.resume();
  };
  EXPECT_DEATH(moves(), "moved while it runs");
  const auto destroys_on_the_same_stack = [] {
    copy_stack shared(stack_size);
    auto other = std::make_unique<copied_coroutine<int()>>(shared, [](auto& yield) {
      yield(1);
      return 2;
    });
    other->resume();
    copied_coroutine<int()> one(shared, [&](auto&) {
      other.reset();
      return 1;
    });
    one.resume();
  };
  EXPECT_DEATH(destroys_on_the_same_stack(), "cannot be unwound was destroyed: a coroutine runs on this copy_stack");
}

// ---- looking for accesses from outside ----------------------------------------------------------------------------

TEST(copied_coroutine_test, values_are_taken_before_the_stack_is_protected) {
  copy_stack shared(stack_size, {.check = pirn::copy_stack_check::protect});
  const auto body = [](auto& yield, std::string first) -> std::string {
    for (;;) {
      first += yield(first + "!");
    }
  };
  copied_coroutine<std::string(std::string)> one(shared, body), other(shared, body);
  EXPECT_EQ(one.resume("a"), "a!");
  EXPECT_EQ(other.resume("b"), "b!");
  EXPECT_EQ(one.resume("c"), "ac!");
  EXPECT_EQ(one.resume("d"), "acd!");
  copied_coroutine<int()> throws(shared, [](auto&) -> int { throw std::runtime_error("out"); });
  EXPECT_THROW(throws.resume(), std::runtime_error);
  EXPECT_EQ(other.resume("c"), "bc!");
}

PIRN_NOINLINE int read(const int& from) { return *const_cast<const volatile int*>(&from); }

TEST(copied_coroutine_death_test, a_reference_into_a_suspended_one_is_found) {
  const auto follow = [](const pirn::copy_stack_options& options) {
    copy_stack shared(stack_size, options);
    copied_coroutine<const int&()> one(shared, [](auto& yield) -> const int& {
      std::array<int, 4> local{};
      yield(local[2]);
      std::abort();
    });
    return read(one.resume());
  };
#if defined(PIRN_ASAN)
  // On the real stack: frames on AddressSanitizer's heap are not copied, and may be pointed to.
  if (__asan_get_current_fake_stack() == nullptr) {
    EXPECT_DEATH(follow({}), "use-after-poison");
  }
#else
  EXPECT_EQ(follow({}), 0);
  EXPECT_DEATH(follow({.check = pirn::copy_stack_check::protect}), "");
#endif
}

}  // namespace
