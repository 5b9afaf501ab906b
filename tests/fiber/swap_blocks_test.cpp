// Scopes and bound values that swapped tasks of a stack_swap have open.
#include <optional>
#include <string>
#include <vector>

#include "coro/stack_swap_support.hpp"
#include "fiber/support.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/fiber/context_value.hpp"
#include "pirn/fiber/scope.hpp"

namespace {

using namespace pirn_test;
using pirn::swap_error;
using swap_support::world;

const pirn::context_value<std::string> name;
using name_binding = pirn::context_value<std::string>::binding;

std::string now() { return name.get() != nullptr ? *name.get() : "none"; }

/// Runs `f` on a plain thread, on a fiber and in a body.
template <class F>
void everywhere(F&& f) {
  f();
  rig r(1);
  r.rt.run(f);
  pirn::generator<int> g = [&](auto& yield) {
    f();
    yield(1);
  };
  EXPECT_EQ(*g.begin(), 1);
}

void take_turns(world& w, const std::string& who, int turns) {
  const name_binding mine(name, who);
  for (int i = 0; i < turns; ++i) {
    EXPECT_EQ(now(), who);
    w.yield();
    EXPECT_EQ(now(), who);
    const name_binding inner(name, who + "'s");
    w.yield();
    EXPECT_EQ(now(), who + "'s");
  }
}

TEST(swap_blocks, a_value_is_the_tasks_that_bound_it) {
  everywhere([] {
    const name_binding outer(name, "caller");
    const bool in_body = pirn::detail::bodies_have_blocks();
    world w;
    for (const char* const who : {"a", "b", "c"}) {
      w.spawn([&w, who] {
        EXPECT_EQ(now(), "caller");
        take_turns(w, who, 3);
        EXPECT_EQ(now(), "caller");
      });
    }
    EXPECT_EQ(w.swap.run(), swap_error::none);
    EXPECT_EQ(now(), "caller");
    EXPECT_EQ(pirn::detail::bodies_have_blocks(), in_body);
  });
}

/// Binds the name further down the stack than the task blocks.
[[gnu::noinline]] void bind_below(std::optional<name_binding>& to, const std::string& value) {
  char room[24576];
  asm volatile("" : : "r"(room) : "memory");
  to.emplace(name, value);
  asm volatile("" : : "r"(room) : "memory");  // so that no call is the last operation here
}

TEST(swap_blocks, also_one_that_was_bound_further_down) {
  const auto test = [] {
    world w;
    for (const char* const who : {"a", "b"}) {
      w.spawn([&w, who] {
        std::optional<name_binding> mine;
        bind_below(mine, who);
        w.yield();
        EXPECT_EQ(now(), who);
      });
    }
    EXPECT_EQ(w.swap.run(), swap_error::none);
    EXPECT_EQ(now(), "none");
  };
  test();
  rig r(1);
  r.rt.run(test);
}

TEST(swap_blocks, who_called_run_has_its_own_while_they_are_blocked) {
  everywhere([] {
    world w;
    for (const char* const who : {"a", "b"}) {
      w.spawn([&w, who] {
        const name_binding mine(name, who);
        EXPECT_EQ(w.swap.block(), swap_error::none);
        EXPECT_EQ(now(), who);
      });
    }
    for (int i = 0; i < 2; ++i) {
      std::optional<name_binding> mine;
      if (i == 1) {
        mine.emplace(name, "caller");
        for (auto& each : w.units) {
          w.policy.ready(each);
        }
      }
      const bool in_body = pirn::detail::bodies_have_blocks();
      EXPECT_EQ(w.swap.run(), swap_error::none);
      EXPECT_EQ(now(), i == 1 ? "caller" : "none");
      EXPECT_EQ(pirn::detail::bodies_have_blocks(), in_body);
    }
  });
}

TEST(swap_blocks, a_cancelled_one_is_unwound_with_what_it_had_bound) {
  everywhere([] {
    std::string seen;
    struct tell {
      std::string& to;
      ~tell() { to = now(); }
    };
    world w;
    w.spawn([&] {
      const name_binding mine(name, "cancelled");
      const tell last{seen};
      static_cast<void>(w.swap.block());
    });
    EXPECT_EQ(w.swap.run(), swap_error::none);
    w.swap.cancel(w.units.front());
    w.policy.ready(w.units.front());
    w.spawn([&] { take_turns(w, "other", 1); });
    EXPECT_EQ(w.swap.run(), swap_error::none);
    EXPECT_EQ(seen, "cancelled");
    EXPECT_EQ(now(), "none");
  });
}

TEST(swap_blocks, also_of_dispatchers_in_one_another) {
  world outer;
  world inner;
  for (const char* const who : {"a", "b"}) {
    outer.spawn([&, who] {
      const name_binding mine(name, who);
      outer.yield();
      EXPECT_EQ(now(), who);
      if (*who == 'a') {
        inner.spawn([&] { take_turns(inner, "c", 2); });
        inner.spawn([&] { take_turns(inner, "d", 2); });
        EXPECT_EQ(inner.swap.run(), swap_error::none);
      }
      EXPECT_EQ(now(), who);
    });
  }
  EXPECT_EQ(outer.swap.run(), swap_error::none);
  EXPECT_EQ(now(), "none");
  EXPECT_FALSE(pirn::detail::bodies_have_blocks());
}

TEST(swap_blocks, many_dispatchers_beside_each_other) {
  rig r(1);
  r.rt.run([] {
    constexpr int many = 80;  // more than there is room for
    std::vector<pirn::fiber> all;
    for (int i = 0; i < many; ++i) {
      all.push_back(pirn::spawn([] {
        world w;
        for (const char* const who : {"a", "b"}) {
          w.spawn([&w, who] {
            pirn::this_fiber::yield();
            take_turns(w, who, 2);
            pirn::this_fiber::yield();
          });
        }
        EXPECT_EQ(w.swap.run(), swap_error::none);
        EXPECT_EQ(now(), "none");
      }));
    }
    for (auto& each : all) {
      each.join();
    }
  });
  EXPECT_FALSE(pirn::detail::bodies_have_blocks());
}

TEST(swap_blocks, a_scope_does_not_let_it_block) {
  rig r(1);
  r.rt.run([] {
    const pirn::scope around;
    world w;
    int children = 0;
    for (int i = 0; i < 2; ++i) {
      w.spawn([&] {
        const name_binding mine(name, "mine");
        w.yield();
        {
          pirn::scope open;
          open.spawn([&] { ++children; });
          EXPECT_EQ(w.swap.block(), swap_error::scope_open);
          EXPECT_EQ(now(), "mine");
          open.join();
        }
        w.yield();
        EXPECT_EQ(now(), "mine");
      });
    }
    EXPECT_EQ(w.swap.run(), swap_error::none);
    EXPECT_EQ(children, 2);
    EXPECT_STRNE(to_string(swap_error::scope_open), "unknown");
  });
}

TEST(swap_blocks, a_generator_of_a_task_has_its_own) {
  everywhere([] {
    world w;
    for (const char* const who : {"a", "b"}) {
      w.spawn([&w, who] {
        const name_binding mine(name, who);
        pirn::generator<int> g = [&](auto& yield) {
          const name_binding its(name, "body");
          for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(now(), "body");
            yield(i);
          }
        };
        for ([[maybe_unused]] const int each : g) {
          EXPECT_EQ(now(), who);
          w.yield();
        }
      });
    }
    EXPECT_EQ(w.swap.run(), swap_error::none);
    EXPECT_EQ(now(), "none");
  });
}

}  // namespace
