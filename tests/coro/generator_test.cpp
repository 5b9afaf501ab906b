// Generators: elements of every kind, all drivers and stacks, delegation, and unwinding.

#include "pirn/coro/generator.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "coro/generator_support.hpp"

namespace {

using generator_test::counted;
using generator_test::taken;
using pirn::elements_of;
using pirn::frame;
using pirn::generator;

template <class G>
class every_driver : public testing::Test {};
// Without optimization, and more so with a sanitizer, frames are larger.
using drivers = testing::Types<generator<int>, generator<int, frame<32768>>>;
TYPED_TEST_SUITE(every_driver, drivers);

TYPED_TEST(every_driver, yields_its_elements_in_order) {
  TypeParam numbers = [](auto& yield) {
    for (int i = 1; i <= 5; ++i) {
      yield(i);
    }
  };
  EXPECT_EQ(taken(numbers), (std::vector{1, 2, 3, 4, 5}));
}

TYPED_TEST(every_driver, may_yield_nothing) {
  TypeParam nothing = [](auto&) {};
  EXPECT_EQ(taken(nothing), std::vector<int>{});
  EXPECT_TRUE(nothing.begin() == nothing.end()) << "and remains at its end";
}

TYPED_TEST(every_driver, does_not_begin_before_it_is_iterated) {
  bool begun = false;
  {
    TypeParam numbers = [&](auto& yield) {
      begun = true;
      yield(1);
    };
    EXPECT_FALSE(begun);
  }
  EXPECT_FALSE(begun);
}

TYPED_TEST(every_driver, runs_only_as_far_as_is_asked) {
  int reached = 0;
  TypeParam numbers = [&](auto& yield) {
    for (reached = 1;; ++reached) {
      yield(reached);
    }
  };
  auto it = numbers.begin();
  EXPECT_EQ(reached, 1);
  ++it;
  EXPECT_EQ(reached, 2);
}

TYPED_TEST(every_driver, continues_after_a_break) {
  TypeParam numbers = [](auto& yield) {
    for (int i = 1; i <= 5; ++i) {
      yield(i);
    }
  };
  for (const int i : numbers) {
    if (i == 2) {
      break;
    }
  }
  EXPECT_EQ(taken(numbers), (std::vector{3, 4, 5}));
}

TYPED_TEST(every_driver, unwinds_a_body_that_is_not_at_its_end) {
  int alive = 0;
  {
    TypeParam numbers = [&](auto& yield) {
      const counted outer(alive);
      for (int i = 1;; ++i) {
        const counted inner(alive);
        yield(i);
      }
    };
    auto it = numbers.begin();
    ++it;
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
}

TYPED_TEST(every_driver, unwinds_when_its_consumer_throws) {
  int alive = 0;
  const auto consume = [&] {
    TypeParam numbers = [&](auto& yield) {
      const counted local(alive);
      for (int i = 1;; ++i) {
        yield(i);
      }
    };
    for (const int i : numbers) {
      if (i == 3) {
        throw std::runtime_error("consumer");
      }
    }
  };
  EXPECT_THROW(consume(), std::runtime_error);
  EXPECT_EQ(alive, 0);
}

TYPED_TEST(every_driver, throws_to_the_consumer_what_its_body_throws) {
  int alive = 0;
  TypeParam numbers = [&](auto& yield) {
    const counted local(alive);
    yield(1);
    throw std::runtime_error("producer");
  };
  std::vector<int> seen;
  try {
    for (const int i : numbers) {
      seen.push_back(i);
    }
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "producer");
  }
  EXPECT_EQ(seen, std::vector{1});
  EXPECT_EQ(alive, 0);
  EXPECT_TRUE(numbers.begin() == numbers.end()) << "it has ended";
}

TYPED_TEST(every_driver, throws_from_begin_too) {
  TypeParam numbers = [](auto&) { throw std::runtime_error("at once"); };
  EXPECT_THROW(static_cast<void>(numbers.begin()), std::runtime_error);
}

TYPED_TEST(every_driver, destroys_its_body_at_the_end) {
  const auto shared = std::make_shared<int>(7);
  TypeParam numbers = [shared](auto& yield) { yield(*shared); };
  EXPECT_EQ(shared.use_count(), 2);
  EXPECT_EQ(taken(numbers), std::vector{7});
  EXPECT_EQ(shared.use_count(), 1);
}

TYPED_TEST(every_driver, destroys_a_body_that_never_ran) {
  const auto shared = std::make_shared<int>(7);
  {
    TypeParam numbers = [shared](auto& yield) { yield(*shared); };
    EXPECT_EQ(shared.use_count(), 2);
  }
  EXPECT_EQ(shared.use_count(), 1);
}

[[gnu::noinline]] PIRN_NONE void hanoi(generator<int>::yield& yield, int disks) {
  if (disks != 0) {
    hanoi(yield, disks - 1);
    yield(disks);
    hanoi(yield, disks - 1);
  }
}

TYPED_TEST(every_driver, yields_from_any_depth) {
  TypeParam moves = [](auto& yield) { hanoi(yield, 8); };
  std::vector<int> expected;
  for (unsigned i = 1; i < 256; ++i) {
    expected.push_back(__builtin_ctz(i) + 1);
  }
  EXPECT_EQ(taken(moves), expected);
}

TYPED_TEST(every_driver, may_be_interleaved_with_others) {
  const auto count_from = [](int first) {
    return [first](auto& yield) {
      for (int i = first;; ++i) {
        yield(i);
      }
    };
  };
  TypeParam a = count_from(0), b = count_from(1000);
  auto at_a = a.begin();
  auto at_b = b.begin();
  long sum = 0;
  for (int i = 0; i < 1000; ++i, ++at_a, ++at_b) {
    EXPECT_EQ(*at_b - *at_a, 1000);
    sum += generator_test::many(*at_a, *at_b, 1, 2, 3, 4, 5, 6, 7);
  }
  EXPECT_EQ(sum, 2 * 999 * 500 + 1000 * 1000 + 1000 * 28);
}

TYPED_TEST(every_driver, may_be_nested) {
  TypeParam outer = [](auto& yield) {
    for (int i = 1; i <= 20; ++i) {
      generator<int, frame<16384>> inner = [i](auto& give) {
        for (int k = 1; k <= i % 5; ++k) {
          give(k);
        }
      };
      for (const int k : inner) {
        yield(i * k);
      }
    }
  };
  long sum = 0;
  for (const int i : outer) {
    sum += i;
  }
  long expected = 0;
  for (int i = 1; i <= 20; ++i) {
    expected += i * (i % 5) * (i % 5 + 1) / 2;
  }
  EXPECT_EQ(sum, expected);
}

TEST(generator, consume_each_other) {
  // Each generator takes one element from the other's source for every element that it yields.
  generator<int> odd = [](auto& yield) {
    for (int i = 1;; i += 2) {
      yield(i);
    }
  };
  auto at_odd = odd.begin();
  generator<int> doubled = [&](auto& yield) {
    for (;;) {
      yield(2 * *at_odd);
      ++at_odd;
    }
  };
  auto at_doubled = doubled.begin();
  generator<int> both = [&](auto& yield) {
    for (;;) {
      yield(*at_doubled + *at_odd);
      ++at_doubled;
      ++at_odd;
    }
  };
  auto it = both.begin();
  EXPECT_EQ(*it, 3);
  ++it;
  EXPECT_EQ(*it, 11);  // doubled stood at 3, odd at 5
}

TEST(generator, yields_references) {
  std::vector<int> values{1, 2, 3};
  generator<int&> all = [&](auto& yield) {
    for (int& value : values) {
      yield(value);
    }
  };
  for (int& value : all) {
    value *= 10;
  }
  EXPECT_EQ(values, (std::vector{10, 20, 30}));
}

TEST(generator, yields_constant_references_without_a_copy) {
  const std::string text = "one";
  generator<const std::string&> all = [&](auto& yield) { yield(text); };
  auto it = all.begin();
  static_assert(std::is_same_v<decltype(*it), const std::string&>);
  EXPECT_EQ(&*it, &text);
}

TEST(generator, yields_what_only_moves) {
  generator<std::unique_ptr<int>> all = [](auto& yield) {
    yield(std::make_unique<int>(1));
    auto two = std::make_unique<int>(2);
    yield(std::move(two));
    EXPECT_EQ(two, nullptr);
  };
  std::vector<std::unique_ptr<int>> kept;
  for (auto&& one : all) {
    kept.push_back(std::move(one));
  }
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(*kept[0] + *kept[1], 3);
}

TEST(generator, copies_an_lvalue_that_it_may_not_take) {
  std::string text = "keep";
  generator<std::string> all = [&](auto& yield) { yield(text); };
  for (std::string&& one : all) {
    const std::string stolen = std::move(one);
    EXPECT_EQ(stolen, "keep");
  }
  EXPECT_EQ(text, "keep");
}

struct pair_of_words {
  long first;
  float second;
  bool operator==(const pair_of_words&) const = default;
};
struct three_words {
  long a, b, c;
};
enum class colour : unsigned char { red, green };

TEST(generator, carries_small_values_in_registers_whatever_they_are) {
  static_assert(pirn::generator_element<pair_of_words>::by_value);
  static_assert(!pirn::generator_element<three_words>::by_value);
  static_assert(!pirn::generator_element<std::string>::by_value);
  const auto same = []<class T>(T value) {
    generator<T> one = [value](auto& yield) { yield(value); };
    auto it = one.begin();
    static_assert(std::is_same_v<decltype(*it), T>);
    return *it == value;
  };
  EXPECT_TRUE(same(pair_of_words{-1, 2.5F}));
  EXPECT_TRUE(same(1.5));
  EXPECT_TRUE(same(2.5f));
  EXPECT_TRUE(same(true));
  EXPECT_TRUE(same('x'));
  EXPECT_TRUE(same(static_cast<short>(-3)));
  EXPECT_TRUE(same(colour::green));
  EXPECT_TRUE(same("text"));
  generator<three_words> big = [](auto& yield) { yield({1, 2, 3}); };
  EXPECT_EQ((*big.begin()).c, 3);
}

TEST(generator, runs_on_any_stack) {
  const auto body = [](auto& yield) {
    int local = 0;
    yield(&local);
  };
  pirn::frame_buffer<32768> buffer;
  {
    generator<int*> in_buffer(buffer, 32768, body);
    const void* at = *in_buffer.begin();
    EXPECT_TRUE(at > &buffer && at < &buffer + 1);
  }
  EXPECT_TRUE(buffer.allocate(32768)) << "it was given back";
  alignas(16) static char memory[32768];
  generator<int*> in_memory(pirn::stack(memory, memory + sizeof memory), body);
  const void* at = *in_memory.begin();
  EXPECT_TRUE(at > memory && at < memory + sizeof memory);
}

TEST(generator, says_when_there_is_no_stack) {
  pirn::frame_buffer<1024> buffer;
  const auto body = [](auto& yield) { yield(1); };
  try {
    const generator<int> none(buffer, 4096, body);
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), pirn::stack_error::invalid_size);
  }
  alignas(16) char memory[128];
  try {
    const generator<int> none(pirn::stack(memory, memory + sizeof memory), body);
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), pirn::stack_error::too_small);
  }
}

TEST(generator, gives_its_stack_back) {
  pirn::guarded_pool pool;
  for (int i = 0; i < 3; ++i) {
    generator<int> ended(pool, 65536, [](auto& yield) { yield(1); });
    generator<int> suspended(pool, 65536, [](auto& yield) { yield(1); });
    generator<int> fresh(pool, 65536, [](auto& yield) { yield(1); });
    EXPECT_EQ(taken(ended).size(), 1u);
    EXPECT_EQ(*suspended.begin(), 1);
    EXPECT_EQ(pool.statistics().in_use, 3u);
  }
  EXPECT_EQ(pool.statistics().in_use, 0u);
}

TEST(generator, may_be_iterated_by_several_threads_in_turn) {
  generator<int> numbers = [](auto& yield) {
    for (int i = 0;; ++i) {
      yield(i);
    }
  };
  for (int i = 0; i < 4; ++i) {
    std::thread([&] { EXPECT_EQ(*numbers.begin(), i); }).join();
  }
}

// ---- delegation ---------------------------------------------------------------------------------------------------

generator<int> counting(int first, int last) {
  return [=](auto& yield) {
    for (int i = first; i <= last; ++i) {
      yield(i);
    }
  };
}

TEST(generator, delegates_to_another) {
  generator<int> numbers = [](auto& yield) {
    yield(0);
    yield(elements_of(counting(1, 3)));
    generator<int> none = [](auto&) {};
    yield(elements_of(none));
    yield(elements_of(none));
    yield(4);
    generator<int, frame<32768>> framed = [](auto& give) { give(5); };
    yield(elements_of(framed));
  };
  EXPECT_EQ(taken(numbers), (std::vector{0, 1, 2, 3, 4, 5}));
}

TEST(generator, delegates_to_any_range) {
  generator<long> numbers = [](auto& yield) {
    yield(elements_of(std::vector{1, 2}));
    const std::vector<short> more{3};
    yield(elements_of(more));
    yield(elements_of(counting(4, 5)));
  };
  EXPECT_EQ(taken(numbers), (std::vector<long>{1, 2, 3, 4, 5}));
}

generator<int> nested(int depth, int& alive) {
  return [depth, &alive](auto& yield) {
    const counted local(alive);
    if (depth != 0) {
      yield(elements_of(nested(depth - 1, alive)));
      yield(depth);
      yield(elements_of(nested(depth - 1, alive)));
    }
  };
}

TEST(generator, delegates_recursively) {
  int alive = 0;
  generator<int> moves = nested(7, alive);
  std::vector<int> expected;
  for (unsigned i = 1; i < 128; ++i) {
    expected.push_back(__builtin_ctz(i) + 1);
  }
  EXPECT_EQ(taken(moves), expected);
  EXPECT_EQ(alive, 0);
}

TEST(generator, unwinds_all_that_delegate) {
  int alive = 0;
  {
    generator<int> moves = nested(6, alive);
    auto it = moves.begin();
    for (int i = 0; i < 20; ++i) {
      ++it;
    }
    EXPECT_GT(alive, 3);
  }
  EXPECT_EQ(alive, 0);
}

TEST(generator, throws_from_the_innermost_through_all_that_delegate) {
  int alive = 0;
  generator<int> outer = [&](auto& yield) {
    const counted local(alive);
    try {
      yield(elements_of(generator<int>([&](auto& give) {
        const counted inner(alive);
        give(1);
        throw std::runtime_error("inner");
      })));
    } catch (const std::runtime_error&) {
      yield(2);
      throw std::logic_error("outer");
    }
  };
  auto it = outer.begin();
  EXPECT_EQ(*it, 1);
  ++it;
  EXPECT_EQ(*it, 2);
  EXPECT_THROW(++it, std::logic_error);
  EXPECT_EQ(alive, 0);
}

TEST(generator, goes_on_with_one_that_has_begun) {
  generator<int> inner = counting(1, 4);
  EXPECT_EQ(*inner.begin(), 1);
  generator<int> outer = [&](auto& yield) { yield(elements_of(inner)); };
  EXPECT_EQ(taken(outer), (std::vector{2, 3, 4}));
  EXPECT_TRUE(inner.begin() == inner.end());
}

TEST(generator, costs_the_same_at_any_depth_of_delegation) {
  // At depth 2000 a cost for each level would be a million switches for a thousand elements. The test counts switches.
  constexpr int depth = 200;
  int passed = 0;
  auto level = [&](auto& self, int left) -> generator<int> {
    return [&self, &passed, left](auto& yield) {
      if (left != 0) {
        yield(elements_of(self(self, left - 1)));
        ++passed;
      } else {
        for (int i = 0; i < 1000; ++i) {
          yield(i);
        }
      }
    };
  };
  generator<int> all = level(level, depth);
  int count = 0;
  for (const int i : all) {
    EXPECT_EQ(i, count++);
    EXPECT_EQ(passed, 0) << "no level has run again";
  }
  EXPECT_EQ(count, 1000);
  EXPECT_EQ(passed, depth);
}

// ---- unwinding ------------------------------------------------------------------------------------------------------

TEST(generator, unwinds_past_a_catch_that_swallows) {
  const auto silent = pirn::forced_unwind::set_reporter([](const char*) noexcept {});
  int alive = 0;
  {
    generator<int> numbers = [&](auto& yield) {
      const counted local(alive);
      for (;;) {
        try {
          yield(1);
        } catch (...) {
        }
      }
    };
    EXPECT_EQ(*numbers.begin(), 1);
  }
  EXPECT_EQ(alive, 0);
  pirn::forced_unwind::set_reporter(silent);
}

TEST(generator, may_yield_while_it_is_unwound) {
  struct talkative {
    generator<int>::yield& out;
    int& said;
    ~talkative() noexcept(false) {
      out(99);
      ++said;
    }
  };
  int alive = 0, said = 0;
  {
    generator<int> numbers = [&](auto& yield) {
      const counted local(alive);
      const talkative last{yield, said};
      yield(1);
    };
    EXPECT_EQ(*numbers.begin(), 1);
  }
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(said, 1);
}

TEST(generator, of_rvalue_references_yields_an_lvalue_by_copy) {
  const std::string kept = "kept";
  generator<std::string&&> g = [&](auto& yield) {
    yield(kept);
    yield(std::string("own"));
  };
  std::vector<std::string> all;
  for (std::string&& each : g) {
    all.push_back(std::move(each));
  }
  EXPECT_EQ(all, (std::vector<std::string>{"kept", "own"}));
  EXPECT_EQ(kept, "kept");
}

template <class T>
struct holder {
  T value;
};
struct never_defined;

TEST(generator, of_pointers_to_what_cannot_be_completed) {
  generator<holder<never_defined>*> g = [](auto& yield) { yield(nullptr); };
  int elements = 0;
  for (holder<never_defined>* const each : g) {
    elements += each == nullptr ? 1 : 0;
  }
  EXPECT_EQ(elements, 1);
}

}  // namespace
