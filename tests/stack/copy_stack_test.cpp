#include "pirn/stack/copy_stack.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace {

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
    for (std::size_t i = 0; i < bytes; ++i) {
      ASSERT_EQ(block[i], next & 0xff);
    }
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
  constexpr std::size_t amount = 500;
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

}  // namespace
