// Coroutines: values in both directions, exceptions, stacks, reset, nesting, and variables of each coroutine.

#include "pirn/coro/coroutine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "pirn/stack/expert/frame_buffer.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"

namespace {

#if !defined(PIRN_TEST_COPIED)  // copied_support.hpp has its own
using pirn::coroutine;
#endif

// ---- values ------------------------------------------------------------------------------------------------------

TEST(coroutine_test, values_go_both_ways) {
  coroutine<int(int)> sum([](auto& yield, int first) {
    int total = first;
    while (total < 100) {
      total += yield(total);
    }
    return -total;
  });
  EXPECT_FALSE(sum.done());
  EXPECT_EQ(sum.resume(1), 1);
  EXPECT_EQ(sum.resume(5), 6);
  EXPECT_FALSE(sum.done());
  EXPECT_EQ(sum.resume(500), -506);
  EXPECT_TRUE(sum.done());
}

TEST(coroutine_test, nothing_either_way) {
  int steps = 0;
  coroutine<void()> one([&steps](coroutine<void()>::yield& yield) {
    ++steps;
    yield();
    ++steps;
  });
  EXPECT_EQ(steps, 0);
  one.resume();
  EXPECT_EQ(steps, 1);
  one.resume();
  EXPECT_EQ(steps, 2);
  EXPECT_TRUE(one.done());
}

TEST(coroutine_test, one_way_each) {
  coroutine<int()> source([](auto& yield) {
    for (int i = 0; i < 3; ++i) {
      yield(i);
    }
    return 3;
  });
  std::vector<int> out;
  while (!source.done()) {
    out.push_back(source.resume());
  }
  EXPECT_EQ(out, (std::vector{0, 1, 2, 3}));

  std::vector<std::string> in;
  coroutine<void(std::string)> sink([&in](auto& yield, std::string first) {
    in.push_back(std::move(first));
    for (;;) {
      in.push_back(yield());
    }
  });
  sink.resume("a");
  sink.resume(std::string(100, 'b'));
  EXPECT_EQ(in, (std::vector<std::string>{"a", std::string(100, 'b')}));
}

struct in_words {
  std::uint64_t a, b, c, d;
};

TEST(coroutine_test, four_words_and_more) {
  coroutine<in_words(in_words)> four([](auto& yield, in_words first) {
    const in_words next = yield({first.d, first.c, first.b, first.a});
    return in_words{next.a + 1, next.b + 1, next.c + 1, next.d + 1};
  });
  in_words got = four.resume({1, 2, 3, 4});
  EXPECT_EQ(std::tuple(got.a, got.b, got.c, got.d), std::tuple(4u, 3u, 2u, 1u));
  got = four.resume({5, 6, 7, 8});
  EXPECT_EQ(std::tuple(got.a, got.b, got.c, got.d), std::tuple(6u, 7u, 8u, 9u));

  using many = std::array<int, 100>;
  coroutine<many(many, int, double)> lot([](auto& yield, many first, int add, double) {
    for (;;) {
      for (int& each : first) {
        each += add;
      }
      std::tie(first, add, std::ignore) = yield(first);
    }
    return many{};
  });
  many numbers{};
  numbers[99] = 1;
  EXPECT_EQ(lot.resume(numbers, 5, 0.5)[99], 6);
  EXPECT_EQ(lot.resume(numbers, 7, 0.5)[99], 8);
}

TEST(coroutine_test, several_arrive_as_a_tuple) {
  coroutine<double(int, double, char)> several([](auto& yield, int a, double b, char c) -> double {
    for (;;) {
      const auto [x, y, z] = yield(a + b + c);
      a = x, b = y, c = z;
    }
  });
  EXPECT_EQ(several.resume(1, 0.5, 2), 3.5);
  EXPECT_EQ(several.resume(2, 0.25, 3), 5.25);
}

TEST(coroutine_test, references_are_the_very_objects) {
  int outside = 1;
  coroutine<int&(int&)> passes([](auto& yield, int& first) -> int& {
    int* mine = &first;
    for (int i = 0; i < 2; ++i) {
      ++*mine;
      mine = &yield(*mine);
    }
    return *mine;
  });
  EXPECT_EQ(&passes.resume(outside), &outside);
  EXPECT_EQ(outside, 2);
  int other = 5;
  EXPECT_EQ(&passes.resume(other), &other);
  EXPECT_EQ(other, 6);
  EXPECT_EQ(&passes.resume(outside), &outside);
  EXPECT_TRUE(passes.done());
}

TEST(coroutine_test, constant_types) {
  struct three {
    double a, b, c;
    bool operator==(const three&) const = default;
  };
  struct six {
    three a, b;
    bool operator==(const six&) const = default;
  };
  static char letters[] = "ab";
  const auto both_ways = []<class T>(const T& first, const T& second) {
    // NOLINTNEXTLINE(performance-unnecessary-value-param): a body that takes a constant copy is what is tested
    coroutine<const T(const T)> echo([](auto& yield, const T value) -> const T { return yield(value); });
    EXPECT_EQ(echo.resume(first), first);
    EXPECT_EQ(echo.resume(second), second);
    EXPECT_TRUE(echo.done());
  };
  both_ways(2.5, 3.5);
  both_ways(1, 2);
  both_ways(true, false);
  both_ways(&letters[0], &letters[1]);
  both_ways(three{1, 2, 3}, three{4, 5, 6});
  both_ways(six{{1, 2, 3}, {4, 5, 6}}, six{});
  both_ways(std::string("one that is too long to lie in place"), std::string("two"));
}

TEST(coroutine_test, move_only_values) {
  using owner = std::unique_ptr<int>;
  coroutine<owner(owner, owner)> adds([](auto& yield, owner a, owner b) -> owner {
    for (int i = 0; i < 2; ++i) {
      auto [c, d] = yield(std::make_unique<int>(*a + *b));
      a = std::move(c);
      b = std::move(d);
    }
    return std::make_unique<int>(-1);
  });
  EXPECT_EQ(*adds.resume(std::make_unique<int>(1), std::make_unique<int>(2)), 3);
  EXPECT_EQ(*adds.resume(std::make_unique<int>(3), std::make_unique<int>(4)), 7);
  EXPECT_EQ(*adds.resume(std::make_unique<int>(0), std::make_unique<int>(0)), -1);
}

/// Trivially copyable, and yet cannot be copied.
struct ticket {
  explicit ticket(int of) noexcept : number(of) {}
  ticket(ticket&&) = default;
  int number;
};
static_assert(std::is_trivially_copyable_v<ticket> && !std::is_copy_constructible_v<ticket>);

TEST(coroutine_test, trivial_values_that_can_only_be_moved) {
  coroutine<ticket(ticket)> next([](auto& yield, ticket first) {
    ticket second = yield(ticket(first.number + 1));
    return ticket(second.number + 2);
  });
  EXPECT_EQ(next.resume(ticket(10)).number, 11);
  EXPECT_EQ(next.resume(ticket(20)).number, 22);
}

TEST(coroutine_test, a_stateless_body_need_not_have_a_default_constructor) {
  const auto body = [&](auto&) { return 7; };
  static_assert(std::is_empty_v<decltype(body)> && !std::is_default_constructible_v<decltype(body)>);
  coroutine<int()> one(body);
  EXPECT_EQ(one.resume(), 7);
}

/// Counts how many exist.
struct counted {
  static inline int alive = 0;
  int value = 0;
  explicit counted(int number) : value(number) { ++alive; }
  counted(const counted& other) : value(other.value) { ++alive; }
  counted(counted&& other) noexcept : value(std::exchange(other.value, -1)) { ++alive; }
  counted& operator=(const counted&) = default;
  ~counted() { --alive; }
};

TEST(coroutine_test, every_value_is_destroyed_once) {
  {
    coroutine<counted(counted)> doubles([](auto& yield, const counted& in) {
      const counted again = yield(counted(in.value * 2));
      return counted(again.value * 2);
    });
    EXPECT_EQ(doubles.resume(counted(1)).value, 2);
    EXPECT_EQ(doubles.resume(counted(2)).value, 4);
    EXPECT_TRUE(doubles.done());
  }
  EXPECT_EQ(counted::alive, 0);
  {
    coroutine<counted(counted)> stops([held = counted(7)](auto& yield, const counted& in) {
      yield(counted(in.value + held.value));
      return counted(0);
    });
    EXPECT_EQ(stops.resume(counted(1)).value, 8);
  }
  EXPECT_EQ(counted::alive, 0);
  {
    const coroutine<void()> never([held = counted(7)](auto&) {});
  }
  EXPECT_EQ(counted::alive, 0);
}

// ---- exceptions --------------------------------------------------------------------------------------------------

TEST(coroutine_test, exceptions_leave_through_resume) {
  coroutine<int(int)> throws([](auto& yield, int first) -> int {
    const int next = yield(first);
    throw std::out_of_range(std::to_string(next));
  });
  EXPECT_EQ(throws.resume(1), 1);
  try {
    throws.resume(2);
    ADD_FAILURE();
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "2");
  }
  EXPECT_TRUE(throws.done());
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST(coroutine_test, a_yield_in_a_catch_block_keeps_its_exception) {
  coroutine<int()> catches([](auto& yield) {
    try {
      throw 1;
    } catch (int) {
      yield(std::current_exception() != nullptr ? 1 : 0);
      try {
        throw;
      } catch (int number) {
        return number + 10;
      }
    }
    return -1;
  });
  EXPECT_EQ(catches.resume(), 1);
  EXPECT_EQ(std::current_exception(), nullptr);
  std::string caught;
  try {
    try {
      throw std::runtime_error("the resumer's");
    } catch (...) {
      EXPECT_EQ(catches.resume(), 11);  // leaves its block while we are in ours
      throw;
    }
  } catch (const std::exception& error) {
    caught = error.what();
  }
  EXPECT_EQ(caught, "the resumer's");
  EXPECT_EQ(std::current_exception(), nullptr);
}

TEST(coroutine_test, the_resumers_exception_is_not_the_coroutines) {
  try {
    throw 1;
  } catch (int) {
    coroutine<bool()> looks([](auto& yield) {
      yield(std::current_exception() == nullptr);
      return std::current_exception() == nullptr;
    });
    EXPECT_TRUE(looks.resume());
    EXPECT_NE(std::current_exception(), nullptr);
    EXPECT_TRUE(looks.resume());
    EXPECT_NE(std::current_exception(), nullptr);
  }
}

TEST(coroutine_test, a_yield_in_a_destructor_during_unwinding) {
  coroutine<int()> unwinds([](auto& yield) {
    struct yields {
      coroutine<int()>::yield& to;
      ~yields() { to(std::uncaught_exceptions()); }
    };
    try {
      const yields last{yield};
      throw 1;
    } catch (int number) {
      return 10 * number + std::uncaught_exceptions();
    }
  });
  EXPECT_EQ(unwinds.resume(), 1);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_EQ(unwinds.resume(), 10);
}

// ---- stacks ------------------------------------------------------------------------------------------------------

// Apart, since an inlined yield has a frame of 3 KB under AddressSanitizer, and the recursion one at each depth.
[[gnu::noinline]] int at_the_bottom(coroutine<int()>::yield& yield) {
  yield(1);
  return 0;
}
int at_depth(coroutine<int()>::yield& yield, int depth) {
  volatile char room[64] = {};
  room[depth % 64] = static_cast<char>(depth);
  if (depth == 0) {
    return at_the_bottom(yield);
  }
  return at_depth(yield, depth - 1) + (room[depth % 64] == static_cast<char>(depth) ? 1 : 0);
}
const auto deep = [](coroutine<int()>::yield& yield) { return at_depth(yield, 20); };

#if defined(PIRN_ASAN) || defined(PIRN_TSAN) || defined(__powerpc64__)
constexpr std::size_t roomy = std::size_t{256} * 1024;
#else
constexpr std::size_t roomy = std::size_t{32} * 1024;
#endif

TEST(coroutine_test, on_every_kind_of_stack) {
  const auto check = [](coroutine<int()> one) {
    EXPECT_EQ(one.resume(), 1);
    coroutine<int()> moved(std::move(one));
    EXPECT_TRUE(one.done());  // NOLINT(bugprone-use-after-move): that is what is tested
    EXPECT_EQ(moved.resume(), 20);
  };
  check(coroutine<int()>(deep));
  pirn::guarded_pool pool;
  check(coroutine<int()>(pool, deep));
  check(coroutine<int()>(pool, roomy * 2, deep));
  {
    pirn::guarded_pool::cache cache(pool, roomy);
    check(coroutine<int()>(cache, deep));
    EXPECT_GE(cache.size(), 1u);
  }
  EXPECT_EQ(pool.statistics().in_use, 0u);
  const auto in_frame = std::make_unique<pirn::frame_buffer<roomy>>();
  check(coroutine<int()>(*in_frame, deep));
  check(coroutine<int()>(*in_frame, deep));
  const auto memory = std::make_unique_for_overwrite<char[]>(roomy);
  char* const top =
      reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(memory.get() + roomy) & ~std::uintptr_t{15});
  check(coroutine<int()>(pirn::stack(memory.get(), top), deep));
}

#if !defined(PIRN_TEST_COPIED)
TEST(coroutine_test, no_stack_is_said) {
  const auto buffer = std::make_unique<pirn::frame_buffer<roomy>>();
  coroutine<int()> first(*buffer, deep);
  EXPECT_THROW(coroutine<int()>(*buffer, deep), std::system_error);
  alignas(16) std::array<char, 512> little;
  struct large {
    std::array<char, 600> bytes;
    int operator()(coroutine<int()>::yield&) const { return bytes[0]; }
  };
  EXPECT_THROW(coroutine<int()>(pirn::stack(little.data(), little.data() + little.size()), large()), std::length_error);
  EXPECT_EQ(first.resume(), 1);
}
#endif

TEST(coroutine_test, a_body_that_cannot_be_moved_in_gives_the_stack_back) {
  struct throws_when_copied {
    throws_when_copied() = default;
    throws_when_copied(const throws_when_copied&) { throw 1; }
    void operator()(coroutine<void()>::yield&) const {}
  };
  pirn::guarded_pool pool;
  const throws_when_copied body;
  EXPECT_THROW(coroutine<void()>(pool, body), int);
  EXPECT_EQ(pool.statistics().in_use, 0u);
}

TEST(coroutine_test, an_over_aligned_body_lies_as_it_asked) {
  struct alignas(128) aligned {
    int operator()(coroutine<int()>::yield&) const { return reinterpret_cast<std::uintptr_t>(this) % 128 == 0 ? 1 : 0; }
  };
  coroutine<int()> one{aligned()};
  EXPECT_EQ(one.resume(), 1);
}

#if !defined(PIRN_TEST_COPIED)
// ---- taking over -------------------------------------------------------------------------------------------------

TEST(coroutine_test, takes_over_one_that_its_own_body_holds) {
  const auto held = [](int number, std::unique_ptr<coroutine<int()>> next) {
    return coroutine<int()>([number, next = std::move(next)](auto& yield) {
      for (;;) {
        yield(number);
      }
      return static_cast<int>(next == nullptr);
    });
  };
  auto second = std::make_unique<coroutine<int()>>(held(2, nullptr));
  coroutine<int()>& next = *second;
  coroutine<int()> head = held(1, std::move(second));
  EXPECT_EQ(head.resume(), 1);
  EXPECT_EQ(next.resume(), 2);
  head = std::move(next);
  EXPECT_EQ(head.resume(), 2);
  coroutine<int()>& same = head;
  head = std::move(same);
  EXPECT_EQ(head.resume(), 2);
}
#endif

// ---- reset -------------------------------------------------------------------------------------------------------

#if !defined(PIRN_TEST_COPIED)
TEST(coroutine_test, a_reset_that_fails_keeps_the_stack) {
  struct refuses {
    refuses() = default;
    refuses(const refuses&) { throw std::runtime_error("no copy"); }
    int operator()(coroutine<int()>::yield&) const { return 0; }
  };
  pirn::guarded_pool pool;
  {
    coroutine<int()> one(pool, [](auto&) { return 1; });
    const refuses body;
    for (int i = 0; i < 2; ++i) {
      EXPECT_THROW(one.reset(body), std::runtime_error);
      EXPECT_TRUE(one.done());
      EXPECT_EQ(pool.statistics().in_use, 1u);
      EXPECT_THROW(one.resume(), std::logic_error);
    }
    EXPECT_THROW(one.reset([large = std::array<char, 100'000>()](auto&) { return static_cast<int>(large[0]); }),
                 std::length_error);
    EXPECT_EQ(pool.statistics().in_use, 1u);
    one.reset([](auto&) { return 2; });
    EXPECT_EQ(one.resume(), 2);
  }
  EXPECT_EQ(pool.statistics().in_use, 0u);
}
#endif

TEST(coroutine_test, reset_uses_the_stack_again) {
  pirn::guarded_pool pool;
  int destroyed = 0;
  struct note {
    int* number;
    ~note() { ++*number; }
  };
  coroutine<int(int)> one(pool, [&destroyed](auto& yield, int first) {
    const note last{&destroyed};
    return yield(first);
  });
  one.resume(1);
  one.reset([](auto& yield, int first) { return yield(first + 100) + 200; });  // suspended: unwinds it first
  EXPECT_EQ(destroyed, 1);
  EXPECT_FALSE(one.done());
  EXPECT_EQ(one.resume(1), 101);
  EXPECT_EQ(one.resume(2), 202);
  one.reset([held = std::make_unique<int>(3)](auto&, int first) { return *held + first; });  // ended
  one.reset([held = std::make_unique<int>(4)](auto&, int first) { return *held + first; });  // not begun
  EXPECT_EQ(one.resume(1), 5);
  EXPECT_TRUE(one.done());
  one.reset();
  EXPECT_TRUE(one.done());
  EXPECT_EQ(pool.statistics().in_use, 1u);
}

// ---- together ----------------------------------------------------------------------------------------------------

int hanoi(int disks) {
  if (disks == 0) {
    return 0;
  }
  coroutine<int()> above([disks](auto& yield) {
    yield(hanoi(disks - 1));
    return hanoi(disks - 1);
  });
  return above.resume() + 1 + above.resume();
}

TEST(coroutine_test, nest_and_recurse) { EXPECT_EQ(hanoi(8), 255); }

TEST(coroutine_test, an_inner_one_in_the_outers_frame) {
  const auto outer_buffer = std::make_unique<pirn::frame_buffer<roomy * 3>>();
  coroutine<int()> outer(*outer_buffer, [](auto& yield) {
    pirn::frame_buffer<roomy> buffer;
    coroutine<int()> inner(buffer, [](auto& yields) {
      yields(1);
      yields(2);
      return 3;
    });
    int sum = 0;
    while (!inner.done()) {
      sum += inner.resume();
      yield(sum);
    }
    return sum * 10;
  });
  EXPECT_EQ(outer.resume(), 1);
  EXPECT_EQ(outer.resume(), 3);
  EXPECT_EQ(outer.resume(), 6);
  EXPECT_EQ(outer.resume(), 60);
}

TEST(coroutine_test, resumed_by_several_threads_in_turn) {
  coroutine<int(int)> travels([](auto& yield, int first) {
    int sum = first;
    for (int i = 0; i < 20; ++i) {
      try {
        if (i % 3 == 0) {
          throw i;
        }
        sum += yield(sum);
      } catch (int) {
        sum += yield(sum);  // with an exception in flight
      }
    }
    return -sum;
  });
  int last = 0;
  for (int i = 0; i < 21; ++i) {
    std::thread([&] { last = travels.resume(1); }).join();
    EXPECT_EQ(std::abs(last), i + 1);
  }
  EXPECT_TRUE(travels.done());
  EXPECT_EQ(last, -21);
}

// ---- a coroutine's own variables ---------------------------------------------------------------------------------

TEST(coroutine_test, each_has_its_own_variables) {
  struct tracked {
    std::vector<int>* log;
    int number;
    tracked(std::vector<int>* to, int value) : log(to), number(value) {}
    tracked(const tracked& other) : log(other.log), number(other.number + 1) {}
    ~tracked() {
      if (log != nullptr) {
        log->push_back(number);
      }
    }
  };
  std::vector<int> log;
  {
    const pirn::coroutine_local<int> counter(10);
    const pirn::coroutine_local<tracked> first(tracked(&log, 20)), second(tracked(&log, 30));
    log.clear();
    const auto body = [&](auto& yield) {
      const int one = first.get(yield).number, two = second.get(yield).number;
      EXPECT_EQ(one, 22);
      EXPECT_EQ(two, 32);
      for (;;) {
        yield(++counter.get(yield));
      }
      return 0;
    };
    coroutine<int()> a(body), b(body);
    EXPECT_EQ(a.resume(), 11);
    EXPECT_EQ(a.resume(), 12);
    EXPECT_EQ(b.resume(), 11);
    EXPECT_EQ(a.resume(), 13);
    b.reset();
    EXPECT_EQ(log, (std::vector{32, 22}));
    log.clear();
  }
  EXPECT_EQ(log, (std::vector{32, 22, 31, 21}));  // those of a, then the keys' own
}

}  // namespace
