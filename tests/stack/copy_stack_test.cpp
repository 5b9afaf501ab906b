// Contexts that share a copy_stack: images, their allocator and statistics, errors, and misuse.

#include "pirn/stack/expert/copy_stack.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "support.hpp"

namespace {

#if defined(__OPTIMIZE__) && !defined(__powerpc64__)
constexpr bool frames_are_large = stack_test::sanitized;
#else
constexpr bool frames_are_large = true;
#endif

using pirn::copied_context;
using pirn::copy_stack;
using pirn::stack_error;
using pirn::arch::value_words;
using pirn::arch::word;

/// Yields the numbers from `second` on, with `bytes` of frames below the entry function's.
struct counter {
  copy_stack* on;
  std::size_t bytes;
};
[[gnu::noinline]] void count(copy_stack& on, std::size_t bytes, word from) {
  auto* const block = static_cast<unsigned char*>(__builtin_alloca(bytes + 1));
  for (word next = from;; ++next) {
    std::memset(block, static_cast<int>(next & 0xff), bytes);
    asm volatile("" : : "r"(block) : "memory");
    word words[value_words] = {next, 0, 0, 0};
    on.suspend(words);
    asm volatile("" : : "r"(block) : "memory");
    std::size_t right = 0;
    while (right < bytes && block[right] == (next & 0xff)) {
      ++right;
    }
    ASSERT_EQ(right, bytes);
    if (words[0] != 0) {
      return;
    }
  }
}
PIRN_NONE void counting(void* pc, void* sp, void* fp, word first, word second, word, word) {
  auto& parameters = *reinterpret_cast<counter*>(first);
  copy_stack& on = *parameters.on;
  on.entered(pc, sp, fp);
  count(on, parameters.bytes, second);
  on.finish({0, 0, 0, 0});
}

word resume(copied_context& context, word first = 0, word second = 0) {
  word words[value_words] = {first, second, 0, 0};
  EXPECT_EQ(context.bring_in(), stack_error::none);
  context.run(words);
  context.settle();
  return words[0];
}

TEST(copy_stack, contexts_in_random_order_keep_their_frames) {
  copy_stack on(std::size_t{1} << 20);
  ASSERT_EQ(on.error(), stack_error::none);
  constexpr std::size_t amount = stack_test::sanitized ? 100 : 2000;
  std::vector<counter> parameters(amount);
  std::vector<std::unique_ptr<copied_context>> contexts;
  std::vector<word> expected(amount);
  std::mt19937 random(1);
  for (std::size_t i = 0; i < amount; ++i) {
    parameters[i] = {&on, random() % 1000 * (random() % 50 == 0 ? 20 : 1)};
    contexts.push_back(std::make_unique<copied_context>(on, &counting));
    expected[i] = i * 1000;
  }
  for (int step = 0; step < 20000; ++step) {
    const std::size_t i = random() % amount;
    const bool fresh = contexts[i]->fresh();
    const word got =
        fresh ? resume(*contexts[i], reinterpret_cast<word>(&parameters[i]), expected[i]) : resume(*contexts[i]);
    ASSERT_EQ(got, expected[i]++);
  }
  for (auto& each : contexts) {
    if (!each->fresh()) {
      resume(*each, 1);
      EXPECT_TRUE(each->done());
    }
  }
}

TEST(copy_stack, one_alone_on_its_stack_is_never_copied) {
  copy_stack on(std::size_t{1} << 16);
  counter parameters{&on, 100};
  copied_context alone(on, &counting);
  ASSERT_EQ(resume(alone, reinterpret_cast<word>(&parameters), 0), 0U);
  for (word i = 1; i < 1000; ++i) {
    ASSERT_EQ(resume(alone), i);
  }
  EXPECT_EQ(alone.statistics().copies, 0U);
  EXPECT_EQ(alone.capacity(), 0U);
}

/// `amount` counters that have begun, each with `bytes` of frames.
class several {
 public:
  several(copy_stack& on, std::size_t amount, std::size_t bytes) : parameters_(amount, counter{&on, bytes}) {
    for (std::size_t i = 0; i < amount; ++i) {
      contexts_.emplace_back(on, &counting);
      EXPECT_EQ(begin(i), i * 100);
    }
  }
  word begin(std::size_t i) { return resume(contexts_[i], reinterpret_cast<word>(&parameters_[i]), i * 100); }
  void set_bytes(std::size_t bytes) {
    for (auto& each : parameters_) {
      each.bytes = bytes;
    }
  }
  copied_context& operator[](std::size_t i) { return contexts_[i]; }

 private:
  std::vector<counter> parameters_;
  std::vector<copied_context> contexts_;
};

// ---- images and their memory --------------------------------------------------------------------------------------

TEST(copy_stack, statistics_tell_what_was_copied) {
  copy_stack on(std::size_t{1} << 16);
  several two(on, 2, 1000);
  EXPECT_EQ(two[0].statistics().copies, 1U);
  EXPECT_EQ(two[1].statistics().copies, 0U);
  for (int i = 0; i < 9; ++i) {
    resume(two[0]);
    resume(two[1]);
  }
  const pirn::image_statistics first = two[0].statistics();
  EXPECT_EQ(first.copies, 10U);
  EXPECT_EQ(first.bytes, 10 * first.largest);
  EXPECT_GT(first.largest, 1000U);
  EXPECT_LT(first.largest, frames_are_large ? 6000U : 1600U);
  EXPECT_GE(two[0].capacity(), first.largest);
  EXPECT_EQ(two[1].statistics().copies, 9U);
}

/// Counts allocations, and refuses once `left` is used up.
struct counting_allocator {
  void* allocate(std::size_t bytes) noexcept {
    if (left == 0) {
      return nullptr;
    }
    --left;
    held += bytes;
    return std::malloc(bytes);
  }
  void deallocate(void* where, std::size_t bytes) noexcept {
    held -= bytes;
    std::free(where);
  }
  std::size_t left = SIZE_MAX;
  std::size_t held = 0;
};
static_assert(pirn::image_allocator<counting_allocator>);

TEST(copy_stack, images_come_from_the_given_allocator_and_go_back) {
  counting_allocator images;
  {
    copy_stack on(std::size_t{1} << 16, {.images = images});
    several five(on, 5, 300);
    EXPECT_GE(images.held, 4 * 300U);
  }
  EXPECT_EQ(images.held, 0U);
}

TEST(copy_stack, an_image_that_cannot_be_kept_is_an_error_and_hurts_nobody) {
  for (std::size_t granted = 0; granted < 4; ++granted) {
    counting_allocator images{.left = granted};
    copy_stack on(std::size_t{1} << 16, {.images = images});
    std::vector<counter> parameters(5, counter{&on, 500});
    std::vector<copied_context> contexts;
    std::vector<word> next(5);
    for (auto& each : parameters) {
      static_cast<void>(each);
      contexts.emplace_back(on, &counting);
    }
    // The last granted context lies on the stack and stays there.
    for (std::size_t i = 0; i <= granted; ++i) {
      ASSERT_EQ(resume(contexts[i], reinterpret_cast<word>(&parameters[i]), i * 100), i * 100);
      next[i] = i * 100 + 1;
    }
    for (int turn = 0; turn < 3; ++turn) {
      for (std::size_t i = 0; i < 5; ++i) {
        if (i != granted) {
          ASSERT_EQ(contexts[i].bring_in(), stack_error::no_image_memory) << granted << ' ' << i;
        }
      }
      ASSERT_EQ(resume(contexts[granted]), next[granted]++);
    }
    images.left = SIZE_MAX;
    for (std::size_t i = 0; i < 5; ++i) {
      if (i <= granted) {
        EXPECT_EQ(resume(contexts[i]), next[i]);
      } else {
        EXPECT_EQ(resume(contexts[i], reinterpret_cast<word>(&parameters[i]), 7), 7U);
      }
    }
  }
}

PIRN_NONE void shrinking(void* pc, void* sp, void* fp, word first, word, word, word) {
  auto& on = *reinterpret_cast<copy_stack*>(first);
  on.entered(pc, sp, fp);
  word words[value_words] = {};
  const auto deep = [&](auto& self, int depth) -> void {
    volatile char room[256] = {};
    if (depth == 0) {
      on.suspend(words);
    } else {
      self(self, depth - 1);
    }
    room[0] = room[1];
  };
  deep(deep, 20);
  for (;;) {
    on.suspend(words);
  }
}

TEST(copy_stack, buffers_shrink_by_policy) {
  for (const std::uint32_t ratio : {0U, 4U}) {
    counting_allocator images;
    copy_stack on(std::size_t{1} << 16, {.images = images, .shrink_ratio = ratio});
    copied_context one(on, &shrinking), other(on, &shrinking);
    const auto both = [&] {
      resume(one, reinterpret_cast<word>(&on));
      resume(other, reinterpret_cast<word>(&on));
    };
    both();
    const std::size_t large = one.capacity();
    EXPECT_GT(large, 20 * 256U);
    resume(one);
    images.left = 0;  // a buffer that is too large will do when no other is available
    resume(other);
    EXPECT_EQ(one.capacity(), large);
    images.left = SIZE_MAX;
    both();
    if (ratio == 0) {
      EXPECT_EQ(one.capacity(), large);
    } else {
      EXPECT_LT(one.capacity(), large / 4);
    }
    EXPECT_EQ(one.statistics().largest, other.statistics().largest);
  }
}

TEST(copy_stack, a_reserved_buffer_is_used) {
  counting_allocator images;
  copy_stack on(std::size_t{1} << 16, {.images = images});
  copied_context one(on, &shrinking), other(on, &shrinking);
  ASSERT_TRUE(one.reserve(frames_are_large ? 60000 : 15000));
  images.left = 0;
  resume(one, reinterpret_cast<word>(&on));
  resume(other, reinterpret_cast<word>(&on));
  EXPECT_EQ(one.statistics().copies, 1U);
}

// ---- misuse -------------------------------------------------------------------------------------------------------

struct resumes_another {
  copy_stack* on;
  copied_context* other;
  stack_error got;
};
PIRN_NONE void resuming(void* pc, void* sp, void* fp, word first, word, word, word) {
  auto& self = *reinterpret_cast<resumes_another*>(first);
  self.on->entered(pc, sp, fp);
  self.got = self.other->bring_in();
  self.on->finish({0, 0, 0, 0});
}

TEST(copy_stack, one_that_runs_cannot_resume_another_there) {
  copy_stack on(std::size_t{1} << 16);
  counter parameters{&on, 10};
  copied_context other(on, &counting);
  resume(other, reinterpret_cast<word>(&parameters), 5);
  resumes_another request{&on, &other, stack_error::none};
  copied_context one(on, &resuming);
  resume(one, reinterpret_cast<word>(&request));
  EXPECT_EQ(request.got, stack_error::stack_in_use);
  EXPECT_TRUE(one.done());
  EXPECT_EQ(resume(other), 6U);
  const std::error_code code = stack_error::stack_in_use;
  EXPECT_EQ(code, std::errc::device_or_resource_busy);
  EXPECT_EQ(std::error_code(stack_error::no_image_memory), std::errc::not_enough_memory);
}

TEST(copy_stack, what_cannot_be_a_stack_is_said) {
  EXPECT_EQ(copy_stack(0).error(), stack_error::invalid_size);
  if (sizeof(std::size_t) > 4) {
    EXPECT_EQ(copy_stack(SIZE_MAX / 2).error(), stack_error::invalid_size);
  }
  EXPECT_EQ(copy_stack(pirn::stack()).error(), stack_error::invalid_size);
  alignas(16) static char odd[10000];
  EXPECT_EQ(copy_stack(pirn::stack(odd, odd + 9008), {.check = pirn::copy_stack_check::protect}).error(),
            stack_error::guard_refused);
  copy_stack broken(0);
  copied_context on_it(broken, &counting);
  EXPECT_EQ(on_it.bring_in(), stack_error::invalid_size);
}

TEST(copy_stack, a_suspended_context_can_be_moved) {
  copy_stack on(std::size_t{1} << 16);
  several two(on, 2, 50);
  copied_context away(std::move(two[0])), lies_there(std::move(two[1]));
  EXPECT_TRUE(two[0].done());  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(resume(lies_there), 101U);
  EXPECT_EQ(resume(away), 1U);
  away = std::move(lies_there);
  EXPECT_EQ(resume(away), 102U);
}

using copy_stack_death_test = testing::Test;

TEST(copy_stack_death_test, misuse_is_named) {
  const auto outlived = [] {
    copy_stack on(std::size_t{1} << 16);
    counter parameters{&on, 1};
    copied_context one(on, &counting);
    resume(one, reinterpret_cast<word>(&parameters), 5);
    on.~copy_stack();
  };
  EXPECT_DEATH(outlived(), "a copy_stack was destroyed while a context on it had not ended");
  const auto outlived_by_an_image = [] {
    copy_stack on(std::size_t{1} << 16);
    several two(on, 2, 50);
    resume(two[1], 1);
    EXPECT_TRUE(two[1].done());  // so no context lies there
    on.~copy_stack();
  };
  EXPECT_DEATH(outlived_by_an_image(), "a copy_stack was destroyed while a context on it had not ended");
  const auto outlived_by_a_fresh_one = [] {
    copy_stack on(std::size_t{1} << 16);
    copied_context one(on, &counting);
    on.~copy_stack();
  };
  EXPECT_DEATH(outlived_by_a_fresh_one(), "a copy_stack was destroyed while a context on it had not ended");
  const auto ended = [] {
    copy_stack on(std::size_t{1} << 16);
    copied_context one(on, &counting);
    one.end();
    resume(one);
  };
  EXPECT_DEATH(ended(), "resumed after its end");
}

// ---- accesses from outside ------------------------------------------------------------------------------------------

PIRN_NONE void pointing(void* pc, void* sp, void* fp, word first, word, word, word) {
  auto& on = *reinterpret_cast<copy_stack*>(first);
  on.entered(pc, sp, fp);
  volatile int local = 3;
  // An address on its stack, not in its frame on AddressSanitizer's heap.
  word words[value_words] = {reinterpret_cast<word>(__builtin_frame_address(0)) - sizeof(word), 0, 0, 0};
  on.suspend(words);
  on.finish({static_cast<word>(local), 0, 0, 0});
}
PIRN_NOINLINE void write_to(word address) {
  auto* const at = reinterpret_cast<volatile char*>(address);
  *at = *at;
}

TEST(copy_stack, protecting_does_not_change_what_runs) {
  copy_stack on(std::size_t{1} << 16, {.check = pirn::copy_stack_check::protect});
  ASSERT_EQ(on.error(), stack_error::none);
  several three(on, 3, 100);
  for (word turn = 1; turn < 20; ++turn) {
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(resume(three[i]), i * 100 + turn);
    }
    EXPECT_EQ(resume(three[2]), 200 + ++turn);
    EXPECT_EQ(resume(three[0]), turn);
    EXPECT_EQ(resume(three[1]), 100 + turn);
  }
}

TEST(copy_stack_death_test, an_access_to_a_suspended_stack_is_found) {
  const auto access = [](const pirn::copy_stack_options& options) {
    copy_stack on(std::size_t{1} << 16, options);
    copied_context one(on, &pointing);
    write_to(resume(one, reinterpret_cast<word>(&on)));
    std::fputs("nothing found\n", stderr);
    one.end();
  };
#if defined(PIRN_ASAN)
  EXPECT_DEATH(access({}), "use-after-poison");
#else
  access({});
  EXPECT_DEATH(access({.check = pirn::copy_stack_check::protect}), "");
#endif
}

}  // namespace
