// A process that ends by exit, called by the body of a generator or coroutine that exit destroys: with the status that
// was given.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_pool.hpp"
#include "pirn/coro/generator.hpp"

namespace {

constexpr int status = 5;
#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
constexpr const char* silence = "";
#else
constexpr const char* silence = "^$";
#endif

template <class Body>
void ends_with_its_status(Body body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        body();
        std::_Exit(1);
      },
      testing::ExitedWithCode(status), silence);
}

TEST(exit_death, by_the_body_of_a_generator) {
  ends_with_its_status([] {
    static pirn::generator<int> g = [](auto& yield) {
      yield(1);
      std::exit(status);
    };
    for (const int each : g) {
      static_cast<void>(each);
    }
  });
  ends_with_its_status([] {
    static pirn::generator<int, pirn::frame<65536>> g = [](auto& yield) {
      yield(1);
      std::exit(status);
    };
    for (const int each : g) {
      static_cast<void>(each);
    }
  });
}

TEST(exit_death, while_a_generator_is_iterated) {
  ends_with_its_status([] {
    static pirn::generator<int> g = [](auto& yield) {
      yield(1);
      yield(2);
    };
    for (const int each : g) {
      static_cast<void>(each);
      std::exit(status);
    }
  });
}

TEST(exit_death, by_the_body_of_a_coroutine) {
  ends_with_its_status([] {
    static pirn::coroutine<void()> outer;
    static pirn::coroutine<void()> inner([](auto& yield) {
      yield();
      std::exit(status);
    });
    outer = pirn::coroutine<void()>([](auto&) {
      inner.resume();
      inner.resume();
    });
    outer.resume();
  });
  ends_with_its_status([] {
    static auto memory = std::make_unique<char[]>(65536);
    static pirn::coroutine<void()> c(pirn::stack(memory.get(), memory.get() + 65536), [](auto&) { std::exit(status); });
    c.resume();
  });
}

TEST(exit_death, by_a_job_of_a_pool) {
  ends_with_its_status([] {
    static pirn::coroutine_pool pool;
    auto waits = pool.start([](auto& yield) { yield(); });
    static_cast<void>(pool.start([](auto&) { std::exit(status); }));
  });
}

TEST(exit_death, what_is_suspended_is_unwound) {
  ends_with_its_status([] {
    struct says {
      ~says() { std::_Exit(status); }
    };
    static pirn::coroutine<void()> c([](auto& yield) {
      const says at_the_end;
      yield();
    });
    c.resume();
    std::exit(1);
  });
}

TEST(exit_death, otherwise_a_running_one_must_not_be_destroyed) {
  EXPECT_DEATH(
      {
        pirn::coroutine<void()>* c = nullptr;
        c = new pirn::coroutine<void()>([&](auto&) { delete c; });
        c->resume();
      },
      "destroyed while it is running");
}

}  // namespace
