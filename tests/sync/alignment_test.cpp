// Types of any alignment, wherever pirn makes room for a type that it does not know: frames of tasks, control blocks
// and stacks, buffers, states and mailboxes.
#include <cstring>
#include <numeric>

#include "fiber/support.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/fiber/blocking.hpp"
#include "pirn/fiber/context_value.hpp"
#include "pirn/fiber/fiber_local.hpp"
#include "pirn/fiber/fork_join.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/fiber/task.hpp"
#include "pirn/sync/actor.hpp"
#include "pirn/sync/co.hpp"
#include "pirn/sync/expert/local_future.hpp"
#include "pirn/sync/future.hpp"
#include "pirn/sync/select.hpp"

namespace {

using namespace pirn_test;
namespace co = pirn::co;

std::atomic<int> misplaced{0};

/// Checks that each of its objects lies where its type demands.
template <std::size_t alignment>
struct alignas(alignment) aligned {
  explicit aligned(int what = 0) noexcept : value(what) { look(); }
  aligned(const aligned& other) noexcept : value(other.value) { look(); }
  aligned(aligned&& other) noexcept : value(other.value) { look(); }
  aligned& operator=(const aligned&) noexcept = default;
  ~aligned() { look(); }
  void look() const noexcept {
    const volatile aligned* const here = this;  // otherwise the compiler would know the address
    auto at = reinterpret_cast<std::uintptr_t>(here);
    asm volatile("" : "+r"(at));
    misplaced += at % alignment != 0 ? 1 : 0;
  }
  int value;
};
using line = aligned<64>;
using two_lines = aligned<128>;
using page = aligned<4096>;

template <class T>
class alignment : public testing::Test {};
using all = testing::Types<aligned<16>, aligned<32>, line, two_lines, aligned<1024>, page>;
TYPED_TEST_SUITE(alignment, all);

/// Shifts the next allocations on the heap, so that none is aligned by chance.
std::vector<std::unique_ptr<char[]>> shift(std::size_t round) {
  std::vector<std::unique_ptr<char[]>> kept;
  for (std::size_t i = 0; i <= round % 5; ++i) {
    kept.push_back(std::make_unique<char[]>(24 + 16 * (round + 7 * i)));
  }
  return kept;
}
constexpr int rounds = 12;

template <class T>
pirn::task<int> inner(T argument, char odd) {
  T mine(argument.value + odd);
  co_await co::yield();
  mine.look();
  argument.look();
  co_return mine.value;
}
template <class T>
pirn::task<T> outer(int from) {
  char odd = 1;  // with others of its kind below, so that the size of a frame says little about its alignment
  T mine(from);
  char odder[45] = {1};
  asm volatile("" : : "r"(&odd), "r"(&odder[0]) : "memory");
  const int got = co_await inner<T>(mine, odd);
  co_await co::yield();
  mine.look();
  asm volatile("" : : "r"(&odd), "r"(&odder[0]) : "memory");
  co_return T(got + odder[0]);
}

TYPED_TEST(alignment, of_what_is_in_the_frame_of_a_task) {
  rig r(1, {.stack_size = 256U << 10U});
  misplaced = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto shifted = shift(static_cast<std::size_t>(round));
    r.rt.run([&] {
      // Out of the compiler's sight: it may put frames whose end it sees on the stack.
      std::vector<pirn::task<TypeParam>> some;
      for (int i = 0; i < 4; ++i) {
        some.push_back(outer<TypeParam>(round));
      }
      some.erase(some.begin() + 1);
      asm volatile("" : : "r"(some.data()) : "memory");
      for (pirn::task<TypeParam>& each : some) {
        EXPECT_EQ(pirn::await(std::move(each)).value, round + 2);
      }
    });
  }
  EXPECT_EQ(misplaced, 0);
}

TYPED_TEST(alignment, of_what_a_fiber_captures) {
  rig r(2, {.stack_size = 256U << 10U});
  misplaced = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto shifted = shift(static_cast<std::size_t>(round));
    const TypeParam mine(round);
    std::atomic<int> sum{0};
    const auto body = [mine, &sum] {
      TypeParam local(mine.value);
      pause(1);
      mine.look();
      local.look();
      sum += local.value;
    };
    r.rt.spawn(body).join();
    r.rt.run([&] {
      pirn::spawn(body).join();
      pirn::spawn(body, {.worker = pirn::spawn_options::any_worker, .migratable = true}).join();
      pirn::blocking(body);
      pirn::scope children;
      children.spawn(body);
      children.spawn(body);
      children.join();
    });
    r.rt.spawn([&] { pirn::fork2(body, body); }, {.migratable = true}).join();
    EXPECT_EQ(sum, 8 * round);
  }
  EXPECT_EQ(misplaced, 0);
}

TYPED_TEST(alignment, of_what_is_kept_for_a_fiber) {
  rig r(1, {.stack_size = 256U << 10U});
  misplaced = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto shifted = shift(static_cast<std::size_t>(round));
    r.rt.run([&] {
      static pirn::fiber_local<TypeParam> local;
      static const pirn::context_value<TypeParam> key;
      local.emplace(round);
      const typename pirn::context_value<TypeParam>::binding bound(key, round);
      EXPECT_EQ(local->value + key.get()->value, 2 * round);
    });
  }
  EXPECT_EQ(misplaced, 0);
}

TYPED_TEST(alignment, of_what_is_sent) {
  rig r(2, {.stack_size = 256U << 10U});
  misplaced = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto shifted = shift(static_cast<std::size_t>(round));
    for (const std::size_t room : {std::size_t{0}, std::size_t{1}, std::size_t{5}, pirn::unbounded}) {
      pirn::channel<TypeParam> values(room);
      pirn::fiber sender = r.rt.spawn([&] {
        for (int i = 1; i <= 3; ++i) {
          EXPECT_TRUE(values.send(TypeParam(i)).has_value());
        }
        const auto task = [](pirn::channel<TypeParam>& to) -> pirn::task<> {
          const auto sent = co_await co::send(to, TypeParam(4));
          EXPECT_TRUE(sent.has_value());
        };
        pirn::await(task(values));
        EXPECT_TRUE(pirn::select(pirn::send(values, TypeParam(5))).outcome.has_value());
      });
      int sum = 0;
      r.rt.run([&] {
        for (int i = 1; i <= 3; ++i) {
          sum += values.receive()->value;
        }
        sum += pirn::await([](pirn::channel<TypeParam>& from) -> pirn::task<int> {
          const auto got = co_await co::receive(from);
          co_return got->value;
        }(values));
        std::optional<TypeParam> last;
        EXPECT_TRUE(pirn::select(pirn::receive(values, last)).outcome.has_value());
        sum += last->value;
      });
      sender.join();
      EXPECT_EQ(sum, 15);
    }
  }
  EXPECT_EQ(misplaced, 0);
}

TYPED_TEST(alignment, of_what_is_promised) {
  rig r(2, {.stack_size = 256U << 10U});
  misplaced = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto shifted = shift(static_cast<std::size_t>(round));
    pirn::promise<TypeParam> to;
    pirn::future<TypeParam> from = to.get_future();
    to.set_value(TypeParam(3));
    EXPECT_EQ(from.get().value, 3);
    r.rt.run([&] {
      const TypeParam mine(round);
      pirn::packaged_task<TypeParam(int)> later([mine](int more) { return TypeParam(mine.value + more); });
      later(1);
      EXPECT_EQ(later.get_future().get().value, round + 1);
      const auto keeper = std::make_unique<pirn::actor<TypeParam>>(round);
      EXPECT_EQ(keeper->call([mine](const TypeParam& own) { return TypeParam(own.value + mine.value); }).value,
                2 * round);
      EXPECT_EQ(keeper->ask([mine](const TypeParam& own) { return TypeParam(own.value + mine.value); }).get().value,
                2 * round);
    });
  }
  EXPECT_EQ(misplaced, 0);
}

TYPED_TEST(alignment, of_bodies_and_elements_of_coroutines) {
  misplaced = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto shifted = shift(static_cast<std::size_t>(round));
    const TypeParam mine(round);
    constexpr std::size_t deep = 256U << 10U;
    pirn::generator<TypeParam> g(pirn::default_stack_pool(), deep, [mine](auto& yield) {
      for (int i = 0; i < 3; ++i) {
        mine.look();
        yield(TypeParam(mine.value + i));
      }
    });
    int sum = 0;
    for (const TypeParam& each : g) {
      each.look();
      sum += each.value;
    }
    EXPECT_EQ(sum, 3 * round + 3);
    const pirn::coroutine_local<TypeParam> variable(mine);
    pirn::coroutine<TypeParam(TypeParam)> c(pirn::default_stack_pool(), deep,
                                            [mine, &variable](auto& yield, TypeParam got) {
                                              variable.get(yield).look();
                                              for (int i = 0; i < 2; ++i) {
                                                got = yield(TypeParam(mine.value + got.value));
                                              }
                                              return got;
                                            });
    EXPECT_EQ(c.resume(TypeParam(1)).value, round + 1);
    EXPECT_EQ(c.resume(TypeParam(2)).value, round + 2);
    EXPECT_EQ(c.resume(TypeParam(3)).value, 3);
    pirn::copy_stack both(deep);
    const auto counting = [mine](auto& yield) {
      TypeParam own(mine.value + 1);
      yield(own.value);
      mine.look();
      own.look();
      return own.value + 1;
    };
    pirn::copied_coroutine<int()> a(both, counting);
    pirn::copied_coroutine<int()> b(both, counting);
    EXPECT_EQ(a.resume() + b.resume() + a.resume() + b.resume(), 4 * round + 6);
  }
  EXPECT_EQ(misplaced, 0);
}

}  // namespace
