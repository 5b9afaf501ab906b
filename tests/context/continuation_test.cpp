// The values that continuations carry, and the order in which they resume one another. Ends of bodies are in
// continuation_end_test.cpp.

#include "pirn/context/continuation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "context/continuation_support.hpp"

namespace {

using pirn::continuation;
using support::stacks;

// ---- types ------------------------------------------------------------------------------------------------------

static_assert(std::is_same_v<continuation<int>::dual, continuation<int>>);
static_assert(std::is_same_v<continuation<int(char)>::dual, continuation<char(int)>>);
static_assert(std::is_same_v<continuation<void()>::dual, continuation<void()>>);
static_assert(std::is_same_v<continuation<void(int)>::dual, continuation<int()>>);
static_assert(std::is_same_v<continuation<int(char, long)>::dual, continuation<std::tuple<char, long>(int)>>);
static_assert(std::is_same_v<continuation<std::tuple<char, long>(int)>::dual, continuation<int(char, long)>>);
static_assert(std::is_same_v<continuation<int(std::tuple<char>)>::dual::dual, continuation<int(std::tuple<char>)>>);
static_assert(std::is_same_v<continuation<>::resumed, continuation<>>);
static_assert(std::is_same_v<continuation<void(int)>::resumed, continuation<void(int)>>);
static_assert(std::is_same_v<continuation<int, char>::resumed, std::tuple<continuation<int, char>, int, char>>);
static_assert(!std::is_copy_constructible_v<continuation<int>> && !std::is_copy_assignable_v<continuation<int>>);
static_assert(std::is_nothrow_move_constructible_v<continuation<int>>);
#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
static_assert(sizeof(continuation<int>) == 3 * sizeof(void*), "a peer and nothing else");
#endif

// ---- values -----------------------------------------------------------------------------------------------------

/// Sends `value` several times to a body that sends it back, and checks each result.
template <class T, class Equal>
void echoes(const T& value, Equal equal) {
  stacks memory;
  continuation<T> k(memory, [](continuation<T> back, T first) -> typename continuation<T>::finished {
    T got = back.exchange(std::move(first));
    got = back.exchange(std::move(got));
    return std::move(back).finish(std::move(got));
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(k);
    EXPECT_TRUE(equal(k.exchange(value), value)) << "round " << i;
  }
  EXPECT_FALSE(k);
  EXPECT_EQ(memory.in_use, 0U);
}
template <class T>
void echoes(const T& value) {
  echoes(value, [](const T& a, const T& b) { return a == b; });
}

enum class colour : std::uint8_t { red = 1, green = 200 };
struct three_words {
  std::uint64_t a, b, c;
  bool operator==(const three_words&) const = default;
};
struct no_default {
  explicit no_default(int v) : value(v) {}
  int value;
  char more[9] = "abcdefgh";
  bool operator==(const no_default& other) const { return value == other.value && more[7] == other.more[7]; }
};
struct large {
  std::array<std::uint32_t, 100> items;
  bool operator==(const large&) const = default;
};
struct alignas(16) aligned {
  double value;
  bool operator==(const aligned& other) const {
    return value == other.value && reinterpret_cast<std::uintptr_t>(this) % 16 == 0;
  }
};

TEST(continuation, values_of_any_type_travel_both_ways) {
  echoes(true);
  echoes(false);
  echoes(static_cast<signed char>(-3));
  echoes(-7);
  echoes(std::uint32_t{0xffffffff});
  echoes(INT64_MIN);
  echoes(2.5F);
  echoes(-1e300);
  echoes(1.25L);
  echoes(colour::green);
  echoes(&echoes<int>);
  echoes(static_cast<const char*>("text"));
  echoes(nullptr);
  echoes(three_words{1, UINT64_MAX, 3});
  echoes(no_default(42));
  echoes(aligned{3.5});
  large many{};
  for (std::size_t i = 0; i < many.items.size(); ++i) {
    many.items[i] = static_cast<std::uint32_t>(i * i);
  }
  echoes(many);
  echoes(std::string("short"));
  echoes(std::string(1000, 'x'));
  echoes(std::vector<std::string>{"a", std::string(100, 'b')});
}

TEST(continuation, several_values_travel_at_once) {
  stacks memory;
  using k4 = continuation<int, bool, double, char>;
  k4 k(memory, [](k4 back, int a, bool b, double c, char d) -> k4::finished {
    for (;;) {
      std::tie(a, b, c, d) = back.exchange(a + 1, !b, c * 2, static_cast<char>(d + 1));
    }
  });
  const auto [a, b, c, d] = k.exchange(-5, true, 0.25, 'a');
  EXPECT_EQ(a, -4);
  EXPECT_FALSE(b);
  EXPECT_EQ(c, 0.5);
  EXPECT_EQ(d, 'b');
  auto [k2, e, f, g, h] = std::move(k).resume(a, b, c, d);
  EXPECT_FALSE(k);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(k2);
  EXPECT_EQ(e, -3);
  EXPECT_TRUE(f);
  EXPECT_EQ(g, 1.0);
  EXPECT_EQ(h, 'c');
}

// Five words, and a mixture of values that are passed in words and values that are passed by address.
TEST(continuation, more_than_four_words_lie_in_the_senders_frame) {
  stacks memory;
  using many = continuation<int, std::string, three_words, std::unique_ptr<int>, long, char>;
  many k(memory,
         [](many back, int a, std::string b, three_words c, std::unique_ptr<int> d, long e, char f) -> many::finished {
           for (;;) {
             *d += 1;  // NOLINT(bugprone-use-after-move): it came back
             std::tie(a, b, c, d, e, f) = back.exchange(a + 1, b + "!", {c.c, c.b, c.a}, std::move(d), -e, f);
           }
         });
  auto pointer = std::make_unique<int>(5);
  int* const same = pointer.get();
  auto [a, b, c, d, e, f] =
      k.exchange(1, "a string that is too long to lie in place", {1, 2, 3}, std::move(pointer), 9, 'z');
  EXPECT_EQ(a, 2);
  EXPECT_EQ(b, "a string that is too long to lie in place!");
  EXPECT_EQ(c, (three_words{3, 2, 1}));
  EXPECT_EQ(d.get(), same);
  EXPECT_EQ(*d, 6);
  EXPECT_EQ(e, -9);
  EXPECT_EQ(f, 'z');
}

TEST(continuation, move_only_values_are_not_copied) {
  stacks memory;
  continuation<std::unique_ptr<int>> k(memory,
                                       [](continuation<std::unique_ptr<int>> back,
                                          std::unique_ptr<int> p) -> continuation<std::unique_ptr<int>>::finished {
                                         *p *= 2;
                                         p = back.exchange(std::move(p));
                                         *p *= 3;
                                         return std::move(back).finish(std::move(p));
                                       });
  auto p = std::make_unique<int>(7);
  int* const same = p.get();
  p = k.exchange(std::move(p));
  EXPECT_EQ(*p, 14);
  p = k.exchange(std::move(p));
  EXPECT_EQ(p.get(), same);
  EXPECT_EQ(*p, 42);
  EXPECT_FALSE(k);
}

TEST(continuation, references_name_the_senders_object) {
  stacks memory;
  using refs = continuation<const std::string&(int&, int&&)>;
  const std::string text = "mine";
  refs k(memory, [&text](refs::dual back, int& a, int&& b) -> refs::dual::finished {
    for (;;) {
      a += std::exchange(b, 0);
      auto [next, a2, b2] = std::move(back).resume(text);
      EXPECT_EQ(&a, &a2);
      back = std::move(next);
    }
  });
  int sum = 1, spent = 10;
  EXPECT_EQ(&k.exchange(sum, std::move(spent)), &text);
  EXPECT_EQ(sum, 11);
  EXPECT_EQ(spent, 0);  // NOLINT(bugprone-use-after-move)
}

TEST(continuation, nothing_travels_either_way) {
  stacks memory;
  int turns = 0;
  continuation<> k(memory, [&turns](continuation<> back) -> continuation<>::finished {
    for (; turns < 3; ++turns) {
      back = std::move(back).resume();
    }
    return std::move(back).finish();
  });
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(k);
    EXPECT_EQ(turns, i == 0 ? 0 : i - 1);
    k = std::move(k).resume();
  }
  EXPECT_FALSE(k);

  continuation<int()> source(memory, [](continuation<void(int)> back) -> continuation<void(int)>::finished {
    back.exchange(1);
    return std::move(back).finish(2);
  });
  EXPECT_EQ(source.exchange(), 1);
  EXPECT_EQ(source.exchange(), 2);
  EXPECT_FALSE(source);

  std::vector<int> got;
  continuation<void(int)> sink(memory, [&got](continuation<int()> back, int first) -> continuation<int()>::finished {
    got.push_back(first);
    got.push_back(back.exchange());
    return std::move(back).finish();
  });
  sink.exchange(5);
  sink = std::move(sink).resume(6);
  EXPECT_FALSE(sink);
  EXPECT_EQ(got, (std::vector{5, 6}));
}

TEST(continuation, types_differ_by_direction) {
  stacks memory;
  using count = continuation<std::tuple<std::string, std::size_t>(const char*)>;
  static_assert(std::is_same_v<count::dual, continuation<const char*(std::string, std::size_t)>>);
  count k(memory, [](count::dual back, const char* word) -> count::dual::finished {
    std::string all;
    for (std::size_t words = 1;; ++words) {
      all += word;
      word = back.exchange(all, words);
    }
  });
  k.exchange("one ");
  auto [k2, all, words] = std::move(k).resume("two ");
  EXPECT_EQ(all, "one two ");
  EXPECT_EQ(words, 2U);
  std::tie(all, words) = k2.exchange("three");
  EXPECT_EQ(all, "one two three");
}

// ---- the order of resumes -------------------------------------------------------------------------------------------

TEST(continuation, start_enters_the_body_at_once) {
  stacks memory;
  auto [k, x] = continuation<int>::start(
      memory,
      [](continuation<int> back, int first) -> continuation<int>::finished {
        for (;;) {
          first = back.exchange(first * 2);
        }
      },
      21);
  EXPECT_EQ(x, 42);
  EXPECT_EQ(memory.in_use, 1U);
  EXPECT_EQ(k.exchange(4), 8);
  EXPECT_EQ(memory.last_size, std::size_t{64} << 10);
}

TEST(continuation, start_and_end_in_one) {
  stacks memory;
  for (int i = 0; i < 1000; ++i) {
    auto [k, x] = continuation<int>::start(
        memory, [](continuation<int> back, int first) { return std::move(back).finish(first + 1); }, i);
    EXPECT_FALSE(k);
    EXPECT_EQ(x, i + 1);
  }
  EXPECT_EQ(memory.in_use, 0U);
}

TEST(continuation, runs_on_memory_of_the_caller) {
  alignas(16) std::array<std::byte, 16384> bytes;
  const support::memory memory{bytes.data() + 1, bytes.data() + bytes.size() - 3};  // any alignment does
  const void* local = nullptr;
  continuation<int> k(memory, [&local](continuation<int> back, int first) {
    int on_stack = first;
    asm volatile("" : "+m"(on_stack));
#if defined(__SANITIZE_ADDRESS__) || defined(PIRN_ASAN)
    local = __builtin_frame_address(0);  // locals may be on ASan's fake stack
#else
    local = &on_stack;
#endif
    return std::move(back).finish(on_stack);
  });
  EXPECT_EQ(k.exchange(3), 3);
  EXPECT_GE(local, bytes.data());
  EXPECT_LT(local, bytes.data() + bytes.size());
}

struct ring;
using runner = continuation<ring*, int>;
/// Each body stores its resumer here, for the next body that resumes it.
struct ring {
  runner a, b, c;
  std::string order;
};

// A resumes B, B resumes C, C resumes A: none of them is the caller of another.
TEST(continuation, three_hand_over_to_each_other_in_a_circle) {
  stacks memory;
  ring shared;
  shared.b = runner(memory, [](runner from, ring* all, int value) -> runner::finished {
    for (;;) {
      all->order += 'B';
      all->a = std::move(from);
      std::tie(from, all, value) = std::move(all->c).resume(all, value + 1);
    }
  });
  shared.c = runner(memory, [](runner from, ring* all, int value) -> runner::finished {
    for (;;) {
      all->order += 'C';
      all->b = std::move(from);
      std::tie(from, all, value) = std::move(all->a).resume(all, value * 10);
    }
  });
  for (int i = 1; i <= 3; ++i) {
    shared.order += 'A';
    auto [from, all, value] = std::move(shared.b).resume(&shared, i);
    shared.c = std::move(from);
    EXPECT_EQ(all, &shared);
    EXPECT_EQ(value, (i + 1) * 10);
  }
  EXPECT_EQ(shared.order, "ABCABCABC");
}

TEST(continuation, many_are_suspended_at_once) {
  constexpr int count = 300;
  stacks memory;
  std::vector<continuation<int>> all;
  for (int i = 0; i < count; ++i) {
    all.emplace_back(
        memory,
        [i](continuation<int> back, int value) -> continuation<int>::finished {
          for (;;) {
            value = back.exchange(value + i);
          }
        },
        16384);
  }
  int sum = 0;
  for (int round = 0; round < 3; ++round) {
    for (auto& each : all) {
      sum = each.exchange(sum);
    }
  }
  EXPECT_EQ(sum, 3 * count * (count - 1) / 2);
  EXPECT_EQ(memory.in_use, static_cast<std::size_t>(count));
  all.clear();
  EXPECT_EQ(memory.in_use, 0U);
}

TEST(continuation, they_nest) {
  stacks memory;
  continuation<int> outer(memory, [&memory](continuation<int> back, int x) -> continuation<int>::finished {
    continuation<int> inner(memory, [](continuation<int> up, int y) -> continuation<int>::finished {
      for (;;) {
        y = up.exchange(y + 1);
      }
    });
    for (;;) {
      x = back.exchange(inner.exchange(x) * 2);
    }
  });
  EXPECT_EQ(outer.exchange(1), 4);
  EXPECT_EQ(outer.exchange(10), 22);
  EXPECT_EQ(memory.in_use, 2U);
  outer = {};
  EXPECT_EQ(memory.in_use, 0U);
}

/// Asks again at each call; compilers assume that pthread_self() never changes.
PIRN_NOINLINE pthread_t this_thread() {
  asm volatile("" ::: "memory");
  return pthread_self();
}

TEST(continuation, goes_on_in_another_thread) {
  stacks memory;
  continuation<pthread_t(int)> k(
      memory, [](continuation<int(pthread_t)> back, int first) -> continuation<int(pthread_t)>::finished {
        int sum = first;
        for (int i = 0; i < 100; ++i) {
          sum += back.exchange(this_thread());
        }
        EXPECT_EQ(sum, 101);
        return std::move(back).finish(pthread_t());
      });
  EXPECT_EQ(k.exchange(1), this_thread());
  for (int i = 0; i < 50; ++i) {
    std::thread([&k] { EXPECT_EQ(k.exchange(1), this_thread()); }).join();
    if (i < 49) {
      EXPECT_EQ(k.exchange(1), this_thread());
    }
  }
  EXPECT_EQ(k.exchange(1), pthread_t());
  EXPECT_FALSE(k);
}

#if defined(PIRN_TSAN)
TEST(continuation, thread_sanitizer_knows_who_runs) {
  stacks memory;
  void* const outside = __tsan_get_current_fiber();
  continuation<void*()> k(memory, [](continuation<void(void*)> back) -> continuation<void(void*)>::finished {
    for (;;) {
      back.exchange(__tsan_get_current_fiber());
    }
  });
  void* const inside = k.exchange();
  EXPECT_NE(inside, outside);
  EXPECT_EQ(__tsan_get_current_fiber(), outside);
  EXPECT_EQ(k.exchange(), inside);
  EXPECT_EQ(__tsan_get_current_fiber(), outside);
}
#endif

}  // namespace
