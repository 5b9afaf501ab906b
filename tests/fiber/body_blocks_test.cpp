// Scopes and bound values that are open in a body while it is suspended.
#include <functional>
#include <optional>
#include <stdexcept>

#include "fiber/support.hpp"
#include "pirn/context/continuation.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/fiber/co.hpp"
#include "pirn/fiber/context_value.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/pirn.h"

namespace {

using namespace pirn_test;
using pirn::context_value;
using pirn::frame;
using pirn::generator;
using pirn::scope;
namespace this_fiber = pirn::this_fiber;

const context_value<std::string> name;
using name_binding = context_value<std::string>::binding;

std::string now() { return name.get() != nullptr ? *name.get() : "none"; }

const auto twice_as = [](const std::string& who) {
  return [who](auto& yield) {
    const name_binding mine(name, who);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(now(), who);
      yield(i);
    }
    EXPECT_EQ(now(), who);
  };
};

/// Runs `f` on a plain thread and on a fiber.
template <class F>
void everywhere(F&& f) {
  f();
  rig r(1);
  r.rt.run(f);
}

template <class Generator>
void take_turns() {
  Generator a = twice_as("a");
  Generator b = twice_as("b");
  auto at_a = a.begin();
  EXPECT_EQ(now(), "none");
  auto at_b = b.begin();
  EXPECT_EQ(now(), "none");
  const name_binding mine(name, "consumer");
  ++at_a;
  EXPECT_EQ(now(), "consumer");
  ++at_b;
  EXPECT_EQ(now(), "consumer");
  ++at_a;
  EXPECT_EQ(at_a, std::default_sentinel);
  EXPECT_EQ(now(), "consumer");
  ++at_b;
  EXPECT_EQ(at_b, std::default_sentinel);
  EXPECT_EQ(now(), "consumer");
}

TEST(body_blocks, a_value_is_the_generators_that_bound_it) { everywhere(take_turns<generator<int>>); }

TEST(body_blocks, also_of_those_in_a_frame) { everywhere(take_turns<generator<int, frame<16384>>>); }

TEST(body_blocks, also_in_a_frame_of_another_body) {
  everywhere([] {
    generator<int> outer = [](auto& yield) {
      generator<int, frame<16384>> inner = twice_as("inner");
      const name_binding mine(name, "outer");
      for (const int element : inner) {
        EXPECT_EQ(now(), "outer");
        yield(element);
        EXPECT_EQ(now(), "outer");
      }
    };
    int elements = 0;
    for (const int each : outer) {
      EXPECT_EQ(now(), "none");
      elements += each + 1;
    }
    EXPECT_EQ(elements, 3);
  });
}

TEST(body_blocks, who_delegates_is_suspended_too) {
  everywhere([] {
    generator<int> outer = [](generator<int>::yield& yield) {
      const name_binding mine(name, "outer");
      yield(pirn::elements_of(generator<int>([](generator<int>::yield& deeper) {
        EXPECT_EQ(now(), "outer");
        const name_binding its(name, "inner");
        deeper(1);
        EXPECT_EQ(now(), "inner");
        deeper(2);
      })));
      EXPECT_EQ(now(), "outer");
      yield(3);
    };
    int sum = 0;
    for (const int each : outer) {
      EXPECT_EQ(now(), "none");
      sum += each;
    }
    EXPECT_EQ(sum, 6);
  });
}

TEST(body_blocks, a_coroutine_and_one_in_a_frame) {
  everywhere([] {
    const auto body = [](auto& yield) {
      const name_binding mine(name, "body");
      yield(1);
      EXPECT_EQ(now(), "body");
      return 2;
    };
    pirn::frame_buffer<16384> buffer;
    pirn::coroutine<int()> one(body);
    pirn::coroutine<int()> other(buffer, body);
    for (int expected = 1; expected <= 2; ++expected) {
      EXPECT_EQ(one.resume(), expected);
      EXPECT_EQ(now(), "none");
      EXPECT_EQ(other.resume(), expected);
      EXPECT_EQ(now(), "none");
    }
  });
}

TEST(body_blocks, a_copied_coroutine_keeps_values_and_may_not_keep_a_scope) {
  rig r(1);
  r.rt.run([] {
    pirn::copy_stack on(65536);
    std::optional<pirn::copied_coroutine<int()>> two[2];
    for (auto& each : two) {
      each.emplace(on, [](auto& yield) {
        const name_binding mine(name, "copied");
        yield(1);
        EXPECT_EQ(now(), "copied");
        {
          const scope all;
          EXPECT_THROW(yield(0), std::logic_error);
        }
        EXPECT_EQ(now(), "copied");
        return 2;
      });
    }
    for (int expected = 1; expected <= 2; ++expected) {
      for (auto& each : two) {
        EXPECT_EQ(each->resume(), expected);
        EXPECT_EQ(now(), "none");
      }
    }
  });
}

TEST(body_blocks, a_continuation_takes_along_what_it_has_open) {
  everywhere([] {
    using k = pirn::continuation<int>;
    const name_binding mine(name, "main");
    const auto body = [](k back, int) {
      EXPECT_EQ(now(), "main");
      const name_binding its(name, "body");
      for (int i = 1; i < 3; ++i) {
        EXPECT_EQ(back.exchange(i), i);
        EXPECT_EQ(now(), "body");
      }
      return std::move(back).finish(3);
    };
    auto [other, got] = k::start(pirn::default_stack_pool(), body, 0);
    EXPECT_EQ(got, 1);
    EXPECT_EQ(now(), "main");
    const scope* const open = nullptr;
    static_cast<void>(open);
    EXPECT_EQ(other.exchange(1), 2);
    EXPECT_EQ(now(), "main");
    EXPECT_EQ(other.exchange(2), 3);
    EXPECT_EQ(now(), "main");
    {
      auto [dropped, one] = k::start(pirn::default_stack_pool(), body, 0);
      EXPECT_EQ(one, 1);
    }
    EXPECT_EQ(now(), "main");
  });
}

/// Opens a scope with a deadline and yields in it.
generator<int> within(std::chrono::milliseconds patience) {
  return [=](auto& yield) {
    const scope limited({.deadline = pirn::platform::now() + patience});
    yield(0);
    yield(this_fiber::check_stop() ? 1 : 2);
    yield(this_fiber::sleep_for(1h) ? 3 : 4);
  };
}

TEST(body_blocks, a_deadline_is_the_bodys) {
  rig r(1);
  r.rt.run([] {
    generator<int> hasty = within(5ms);
    auto at = hasty.begin();
    EXPECT_EQ(this_fiber::deadline(), pirn::platform::never);
    EXPECT_TRUE(this_fiber::sleep_for(20ms));  // its deadline passes here
    EXPECT_TRUE(this_fiber::check_stop());
    ++at;
    EXPECT_EQ(*at, 2);
    EXPECT_TRUE(this_fiber::sleep_for(1ms));
    ++at;
    EXPECT_EQ(*at, 4);
    EXPECT_TRUE(this_fiber::check_stop());
    ++at;
    EXPECT_TRUE(this_fiber::sleep_for(1ms));
  });
}

TEST(body_blocks, what_is_around_the_consumer_counts_when_it_resumes) {
  rig r(1);
  r.rt.run([] {
    generator<int> patient = within(24h);
    auto at = patient.begin();
    {
      const scope hasty({.deadline = pirn::platform::now() + 5ms});
      EXPECT_FALSE(this_fiber::sleep_for(1h));
      ++at;
      EXPECT_EQ(*at, 2);
    }
    EXPECT_TRUE(this_fiber::sleep_for(1ms));
    generator<int> other = within(24h);
    std::optional<scope> first;
    first.emplace(pirn::scope_options{.deadline = pirn::platform::now() + 1h});
    auto at_other = other.begin();  // its deadline is that of `first`, and its own when `first` is gone
    first.reset();
    EXPECT_EQ(this_fiber::deadline(), pirn::platform::never);
    ++at_other;
    EXPECT_EQ(*at_other, 1);
  });
}

TEST(body_blocks, a_child_that_fails_stops_the_body_and_not_the_consumer) {
  rig r(2);
  r.rt.run([] {
    generator<int> g = [](auto& yield) {
      scope helpers;
      helpers.spawn([] {
        static_cast<void>(this_fiber::sleep_for(1ms));
        throw std::runtime_error("as expected");
      });
      yield(1);
      EXPECT_FALSE(this_fiber::sleep_for(1h));
      EXPECT_THROW(helpers.join(), std::runtime_error);
      yield(2);
    };
    int sum = 0;
    for (const int each : g) {
      EXPECT_TRUE(this_fiber::sleep_for(10ms));
      scope own;
      own.spawn([] { this_fiber::yield(); });
      own.join();
      sum += each;
    }
    EXPECT_EQ(sum, 3);
  });
}

TEST(body_blocks, a_scope_closes_in_another_order_than_the_consumers) {
  rig r(1);
  r.rt.run([] {
    int children = 0;
    generator<int> g = [&](auto& yield) {
      {
        scope its;
        its.spawn([&] { ++children; });
        yield(1);
      }
      yield(2);
    };
    auto at = g.begin();
    scope mine;
    mine.spawn([&] { ++children; });
    ++at;
    EXPECT_EQ(*at, 2);
    mine.join();
    EXPECT_EQ(children, 2);
  });
}

TEST(body_blocks, an_early_end_runs_destructors_with_what_was_bound) {
  everywhere([] {
    std::string seen;
    struct tell {
      std::string& to;
      ~tell() { to = now(); }
    };
    {
      generator<int> g = [&](auto& yield) {
        const name_binding mine(name, "body");
        const tell last{seen};
        yield(1);
      };
      auto at = g.begin();
      EXPECT_EQ(now(), "none");
    }
    EXPECT_EQ(seen, "body");
    EXPECT_EQ(now(), "none");
  });
  rig r(1);
  r.rt.run([] {
    bool stopped = false;
    {
      pirn::coroutine<void()> c([&](auto& yield) {
        scope its;
        its.spawn([&] { stopped = !this_fiber::sleep_for(1h); });
        yield();
      });
      c.resume();
      this_fiber::yield();
    }
    EXPECT_TRUE(stopped);
    EXPECT_TRUE(this_fiber::sleep_for(1ms));
  });
}

const context_value<int> level;

TEST(body_blocks, children_keep_the_value_that_the_body_takes_along) {
  rig r(1);
  r.rt.run([] {
    generator<int> g = [](auto& yield) {
      const name_binding outer(name, "outer");
      scope its;
      const name_binding mine(name, "mine");
      its.spawn([] {
        for (int i = 0; i < 10; ++i) {
          EXPECT_EQ(now(), "mine");
          ASSERT_NE(level.get(), nullptr);  // bound before all values of the body
          EXPECT_EQ(*level.get(), 7);
          this_fiber::yield();
        }
      });
      const name_binding later(name, "later");
      yield(1);
      EXPECT_EQ(now(), "later");
      yield(2);
      EXPECT_EQ(now(), "later");
    };
    const context_value<int>::binding older(level, 7);
    const name_binding consumer(name, "consumer");
    for (const int each : g) {
      EXPECT_EQ(now(), "consumer");
      const name_binding again(name, std::to_string(each));
      this_fiber::yield();
      EXPECT_EQ(now(), std::to_string(each));
    }
  });
}

/// Runs `work` in many fibers that either of two workers may resume.
void while_fibers_move(const std::function<void()>& work) {
  rig r(2);
  constexpr int fibers = 8;
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    for (int i = 0; i < fibers; ++i) {
      all.push_back(pirn::spawn(work, {.migratable = true}));
    }
    for (auto& each : all) {
      each.join();
    }
  });
}

TEST(body_blocks, while_fibers_move) {
  while_fibers_move([] {
    for (int turn = 0; turn < scaled(200); ++turn) {
      const std::string mine = std::to_string(this_fiber::number());
      const name_binding own(name, mine);
      generator<int> g = twice_as("body");
      for (const int each : g) {
        EXPECT_EQ(now(), mine);
        static_cast<void>(this_fiber::migrate_to(static_cast<std::size_t>(each)));
        this_fiber::yield();
        EXPECT_EQ(now(), mine);
      }
    }
  });
}

TEST(body_blocks, while_fibers_wait_in_bodies_and_could_move) {
  while_fibers_move([] {
    for (int turn = 0; turn < scaled(200); ++turn) {
      generator<int> g = [](auto& yield) {
        const name_binding mine(name, "body");
        for (int i = 0; i < 2; ++i) {
          static_cast<void>(this_fiber::migrate_to(static_cast<std::size_t>(i)));
          this_fiber::yield();
          EXPECT_EQ(now(), "body");
          yield(i);
        }
      };
      for ([[maybe_unused]] const int each : g) {
        EXPECT_EQ(now(), "none");
      }
    }
  });
}

TEST(body_blocks, only_those_of_a_body_cost_its_switches_something) {
  everywhere([] {
    EXPECT_FALSE(pirn::detail::bodies_have_blocks());
    generator<int, frame<16384>> g = [](auto& yield) {
      const name_binding mine(name, "body");
      EXPECT_TRUE(pirn::detail::bodies_have_blocks());
      yield(1);
      EXPECT_TRUE(pirn::detail::bodies_have_blocks());
    };
    auto at = g.begin();
    EXPECT_FALSE(pirn::detail::bodies_have_blocks());
    const name_binding mine(name, "consumer");
    EXPECT_FALSE(pirn::detail::bodies_have_blocks());
    ++at;
    EXPECT_FALSE(pirn::detail::bodies_have_blocks());
  });
}

void* bound_in_c(pirn_coroutine* self, void* who) {
  const name_binding mine(name, static_cast<const char*>(who));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(now(), static_cast<const char*>(who));
    EXPECT_EQ(pirn_yield(self, nullptr, nullptr), 0);
  }
  EXPECT_EQ(now(), static_cast<const char*>(who));
  return nullptr;
}

TEST(body_blocks, also_of_the_c_api) {
  everywhere([] {
    char a[] = "a", b[] = "b";
    pirn_coroutine* one = nullptr;
    pirn_coroutine* other = nullptr;
    ASSERT_EQ(pirn_create(&one, nullptr, bound_in_c, nullptr), 0);
    ASSERT_EQ(pirn_create(&other, nullptr, bound_in_c, nullptr), 0);
    for (int i = 0; i < 3; ++i) {
      EXPECT_GE(pirn_resume(one, a, nullptr), 0);
      EXPECT_EQ(now(), "none");
      EXPECT_GE(pirn_resume(other, b, nullptr), 0);
      EXPECT_EQ(now(), "none");
    }
    EXPECT_EQ(pirn_destroy(one), 0);
    EXPECT_EQ(pirn_destroy(other), 0);
    ASSERT_EQ(pirn_create(&one, nullptr, bound_in_c, nullptr), 0);
    EXPECT_EQ(pirn_resume(one, a, nullptr), PIRN_YIELDED);
    EXPECT_EQ(pirn_destroy(one), 0);  // unwinds with its own value bound
    EXPECT_EQ(now(), "none");
  });
}

void* hasty_in_c(pirn_coroutine* self, void* /*unused*/) {
  const scope limited({.deadline = pirn::platform::now() + 5ms});
  EXPECT_EQ(pirn_yield(self, nullptr, nullptr), 0);
  EXPECT_FALSE(this_fiber::check_stop());
  return nullptr;
}

TEST(body_blocks, a_scope_of_the_c_api) {
  rig r(1);
  r.rt.run([] {
    pirn_coroutine* hasty = nullptr;
    ASSERT_EQ(pirn_create(&hasty, nullptr, hasty_in_c, nullptr), 0);
    EXPECT_EQ(pirn_resume(hasty, nullptr, nullptr), PIRN_YIELDED);
    EXPECT_EQ(this_fiber::deadline(), pirn::platform::never);
    EXPECT_TRUE(this_fiber::sleep_for(20ms));  // its deadline passes here
    EXPECT_EQ(pirn_resume(hasty, nullptr, nullptr), PIRN_ENDED);
    EXPECT_TRUE(this_fiber::check_stop());
    EXPECT_EQ(pirn_destroy(hasty), 0);
  });
}

TEST(body_blocks, values_of_a_task_go_with_it) {
  rig r(1);
  r.rt.run([] {
    const auto one = [](std::string who) -> pirn::task<> {
      EXPECT_EQ(now(), "fiber");
      const name_binding mine(name, who);
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(now(), who);
        co_await pirn::co::yield();
        EXPECT_EQ(now(), who);
        EXPECT_TRUE(co_await pirn::co::sleep_for(1ms));
      }
    };
    scope all;
    for (const char* const each : {"a", "b", "c"}) {
      all.spawn([&one, each] {
        const name_binding mine(name, "fiber");
        pirn::await(one(each));
        EXPECT_EQ(now(), "fiber");
      });
    }
    all.join();
    EXPECT_EQ(now(), "none");
  });
}

TEST(body_blocks_death, a_scope_of_a_task_and_one_that_another_fiber_resumes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        pirn::runtime runtime({.workers = 1});
        runtime.run([] {
          pirn::await([]() -> pirn::task<> {
            const scope open;
            co_await pirn::co::yield();
          }());
        });
      },
      "a task suspends with a scope open");
  EXPECT_DEATH(
      {
        pirn::runtime runtime({.workers = 1});
        runtime.run([] {
          pirn::coroutine<void()> c([](auto& yield) {
            const scope open;
            yield();
          });
          c.resume();
          pirn::spawn([&] { c.resume(); }).join();
        });
      },
      "resumed or destroyed by a fiber");
}

}  // namespace
