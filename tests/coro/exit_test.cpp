// A process that ends by exit with the given status, when a body of a generator or coroutine calls exit, and exit
// destroys that generator or coroutine.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unwind.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_pool.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"
#include "pirn/coro/expert/stack_swap.hpp"
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
  // The lookup takes its argument for a return address, and looks at the byte before it.
  if (_Unwind_FindEnclosingFunction(static_cast<char*>(::dlsym(RTLD_NEXT, "exit")) + 1) == nullptr) {
    GTEST_SKIP() << "this C library has no unwind tables, which show the frame of exit";
  }
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

TEST(exit_death, by_the_body_of_a_copied_coroutine) {
  ends_with_its_status([] {
    static pirn::copy_stack on(65536);
    static pirn::copied_coroutine<void()> waits(on, [](auto& yield) { yield(); });
    static pirn::copied_coroutine<void()> fresh(on, [](auto&) {});
    static pirn::copied_coroutine<void()> c(on, [](auto& yield) {
      yield();
      std::exit(status);
    });
    waits.resume();
    c.resume();
    c.resume();
  });
}

TEST(exit_death, with_a_copied_coroutine_that_is_not_static) {
  ends_with_its_status([] {
    static pirn::copy_stack on(65536);
    pirn::copied_coroutine<void()> c(on, [](auto& yield) { yield(); });
    c.resume();
    std::exit(status);
  });
}

/// One after the other: bodies that have blocked before bodies that have not begun.
struct in_turn {
  pirn::swapped_task* next() noexcept { return std::exchange(ready, nullptr); }
  static void* allocate(std::size_t size) noexcept { return std::malloc(size); }
  static void free(void* buffer, std::size_t /*size*/) noexcept { std::free(buffer); }
  pirn::swapped_task* ready = nullptr;
};

TEST(exit_death, by_a_swapped_task) {
  ends_with_its_status([] {
    static in_turn policy;
    static pirn::swapped_task waits;
    static pirn::swapped_task last;
    static pirn::stack_swap dispatcher(policy);
    waits.assign<[](auto& swap) {
      policy.ready = &last;
      EXPECT_EQ(swap.block(), pirn::swap_error::none);
    }>(dispatcher);
    last.assign<[](auto&) { std::exit(status); }>(dispatcher);
    policy.ready = &waits;
    static_cast<void>(dispatcher.run());
  });
}

TEST(exit_death, by_what_unwinds_a_swapped_task) {
  ends_with_its_status([] {
    struct exits {
      ~exits() { std::exit(status); }
    };
    static in_turn policy;
    static pirn::swapped_task task;
    static pirn::stack_swap dispatcher(policy);
    task.assign<[](auto& swap) {
      const exits at_the_end;
      static_cast<void>(swap.block());
    }>(dispatcher);
    policy.ready = &task;
    static_cast<void>(dispatcher.run());
    dispatcher.cancel(task);
    policy.ready = &task;
    static_cast<void>(dispatcher.run());
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

TEST(exit_death, is_known_without_the_library_too) {
  EXPECT_FALSE(pirn::platform::called_by_exit());
  ends_with_its_status([] {
    static const struct looks {
      ~looks() { std::_Exit(pirn::platform::called_by_exit() ? status : 1); }
    } at_exit;
    pirn::coroutine<void()>([](auto&) { std::exit(1); }).resume();
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
  EXPECT_DEATH(
      {
        pirn::copy_stack on(65536);
        pirn::copied_coroutine<void()>* c = nullptr;
        c = new pirn::copied_coroutine<void()>(on, [&](auto&) { delete c; });
        c->resume();
      },
      "destroyed while it is running");
  EXPECT_DEATH(
      {
        in_turn policy;
        pirn::swapped_task task;
        std::optional<pirn::stack_swap<in_turn>> dispatcher(policy);
        task.assign<[](auto& swap) { swap.reset(); }>(dispatcher);
        policy.ready = &task;
        static_cast<void>(dispatcher->run());
      },
      "a dispatcher was destroyed while it runs");
}

}  // namespace
