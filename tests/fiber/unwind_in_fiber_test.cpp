// A fiber unwinds bodies and suspends meanwhile, in a destructor that the unwind runs.
#include <vector>

#include "fiber/support.hpp"
#include "pirn/context/continuation.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/fiber/scope.hpp"

namespace {

using namespace pirn_test;
namespace this_fiber = pirn::this_fiber;

/// Suspends its fiber `times` times in its destructor.
struct slow_end {
  int times;
  int& ended;
  ~slow_end() {
    for (int i = 0; i < times; ++i) {
      this_fiber::yield();
    }
    ++ended;
  }
};

void drop_generator(int times, int& ended) {
  pirn::generator<int> g = [&](auto& yield) {
    const slow_end kept{times, ended};
    yield(1);
  };
  EXPECT_EQ(*g.begin(), 1);
  this_fiber::yield();
}

void drop_coroutine(int times, int& ended) {
  pirn::coroutine<void()> c([&](auto& yield) {
    const slow_end kept{times, ended};
    yield();
  });
  c.resume();
  this_fiber::yield();
}

void drop_continuation(int times, int& ended) {
  using k = pirn::continuation<int>;
  const auto body = [&](k back, int) {
    const slow_end kept{times, ended};
    EXPECT_EQ(back.exchange(1), 0);
    return std::move(back).finish(2);
  };
  auto [other, got] = k::start(pirn::default_stack_pool(), body, 0);
  EXPECT_EQ(got, 1);
  this_fiber::yield();
}

/// The destructor runs another body, in which the fiber suspends while no exception is in flight.
void drop_one_that_resumes(int times, int& ended) {
  struct resumes {
    int times;
    int& ended;
    ~resumes() {
      pirn::generator<int> inner = [this](auto& yield) {
        for (int i = 0; i < times; ++i) {
          this_fiber::yield();
          yield(i);
        }
      };
      for ([[maybe_unused]] const int each : inner) {
        this_fiber::yield();
      }
      drop_coroutine(times, ended);
    }
  };
  pirn::generator<int> g = [&](auto& yield) {
    const resumes kept{times, ended};
    yield(1);
  };
  EXPECT_EQ(*g.begin(), 1);
  this_fiber::yield();
}

void in_many_fibers(rig& r, void (*drop)(int times, int& ended), const pirn::spawn_options& options) {
  constexpr int fibers = 8;
  constexpr int rounds = 20;
  int ended[fibers] = {};
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    for (int& mine : ended) {
      all.push_back(pirn::spawn(
          [&mine, drop, first = static_cast<int>(&mine - ended)] {
            for (int i = 0; i < rounds; ++i) {
              drop((first * 3 + i) % 5, mine);
            }
          },
          options));
    }
    for (auto& each : all) {
      each.join();
    }
  });
  for (const int each : ended) {
    EXPECT_EQ(each, rounds);
  }
}

TEST(unwind_in_fiber, others_begin_and_end_some_meanwhile) {
  rig r(1);
  for (const auto drop : {drop_generator, drop_coroutine, drop_continuation, drop_one_that_resumes}) {
    in_many_fibers(r, drop, {});
  }
}

TEST(unwind_in_fiber, also_where_fibers_move) {
  rig r(2);
  for (const auto drop : {drop_generator, drop_coroutine, drop_continuation, drop_one_that_resumes}) {
    in_many_fibers(r, drop, {.migratable = true});
  }
}

}  // namespace
