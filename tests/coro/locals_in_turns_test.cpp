// coroutine_local::get() in bodies that take turns on one stack: copied coroutines and swapped tasks. In most tests
// coroutines with separate stacks do the same.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "coro/stack_swap_support.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/stack/expert/copy_stack.hpp"
#include "pirn/stack/expert/frame_buffer.hpp"

namespace {

using swap_support::world;

const pirn::coroutine_local<int> number(5);
const pirn::coroutine_local<std::shared_ptr<int>> held;

[[gnu::noinline]] int& deep_number(int depth) { return depth == 0 ? number.get() : deep_number(depth - 1); }

/// From far below the caller.
[[gnu::noinline]] int number_below(int depth) {
  char room[1024];
  const int found = depth == 0 ? number.get() : number_below(depth - 1);
  asm volatile("" : : "r"(&room[0]) : "memory");  // not a loop
  return found;
}

/// Some bodies of one kind.
class bodies {
 public:
  bodies() = default;
  bodies(const bodies&) = delete;
  bodies& operator=(const bodies&) = delete;
  virtual ~bodies() = default;
  virtual void add(std::function<void()> body) = 0;
  /// Called by a body: lets the next one run.
  virtual void suspend() = 0;
  /// Resumes each body until all have ended.
  virtual void run() = 0;
  /// As `run`, with each turn on another thread, if that is possible.
  virtual void run_on_threads() = 0;
  /// Runs each body to its first suspension, and then ends all.
  virtual void begin_and_drop() = 0;
};

/// Objects like coroutines, made by `make`.
template <class Coroutine>
class resumed : public bodies {
 public:
  void run() final {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t i = 0; i < all_.size(); ++i) {
        any = turn(i) || any;
      }
    }
  }
  void run_on_threads() final {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t i = 0; i < all_.size(); ++i) {
        std::thread([&, i] { any = turn(i) || any; }).join();
      }
    }
  }
  void begin_and_drop() final {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      turn(i);
    }
    all_.clear();
  }
  void suspend() final { (*now_)(); }

 protected:
  using yield = typename Coroutine::yield;
  bool turn(std::size_t which) {
    if (all_[which].done()) {
      return false;
    }
    now_ = ways_[which];
    all_[which].resume();
    return true;
  }
  auto body_of(std::function<void()> body) {
    ways_.push_back(nullptr);
    return [this, which = all_.size(), body = std::move(body)](yield& mine) {
      now_ = ways_[which] = &mine;
      body();
    };
  }
  std::vector<yield*> ways_;
  yield* now_ = nullptr;
  std::vector<Coroutine> all_;  // moves when it grows
};
class on_pool final : public resumed<pirn::coroutine<void()>> {
 public:
  void add(std::function<void()> body) override { all_.emplace_back(body_of(std::move(body))); }
};
class copied final : public resumed<pirn::copied_coroutine<void()>> {
 public:
  ~copied() override { all_.clear(); }
  void add(std::function<void()> body) override { all_.emplace_back(shared_, body_of(std::move(body))); }

 private:
  pirn::copy_stack shared_{std::size_t{1} << 18};
};
class copied_and_protected final : public resumed<pirn::copied_coroutine<void()>> {
 public:
  ~copied_and_protected() override { all_.clear(); }
  void add(std::function<void()> body) override { all_.emplace_back(shared_, body_of(std::move(body))); }

 private:
  pirn::copy_stack shared_{std::size_t{1} << 18, {.check = pirn::copy_stack_check::protect}};
};
class swapped final : public bodies {
 public:
  void add(std::function<void()> body) override { world_.spawn(std::move(body)); }
  void suspend() override { world_.yield(); }
  void run() override {
    while (world_.swap.current() == nullptr && ended() != world_.units.size()) {
      EXPECT_EQ(world_.swap.run(), pirn::swap_error::none);
    }
  }
  void run_on_threads() override { run(); }
  void begin_and_drop() override {
    world_.spawn([this] {
      for (auto& each : world_.units) {
        if (&each != world_.swap.current()) {
          world_.swap.cancel(each);
        }
      }
    });
    run();
  }

 private:
  [[nodiscard]] std::size_t ended() const {
    std::size_t result = 0;
    for (const auto& each : world_.units) {
      result += each.done() ? 1 : 0;
    }
    return result;
  }
  world world_;
};

struct kind {
  const char* name;
  std::unique_ptr<bodies> (*make)();
};
template <class Bodies>
std::unique_ptr<bodies> made() {
  return std::make_unique<Bodies>();
}
constexpr kind kinds[] = {{"coroutine", &made<on_pool>},
                          {"copied", &made<copied>},
                          {"copied_and_protected", &made<copied_and_protected>},
                          {"swapped", &made<swapped>}};

class locals_in_turns : public testing::TestWithParam<kind> {};
INSTANTIATE_TEST_SUITE_P(each, locals_in_turns, testing::ValuesIn(kinds),
                         [](const auto& chosen) { return chosen.param.name; });

TEST_P(locals_in_turns, each_body_keeps_its_values) {
  const auto all = GetParam().make();
  int ended = 0;
  for (int i = 0; i < 40; ++i) {
    all->add([&, i] {
      EXPECT_EQ(number.find(), nullptr);
      EXPECT_EQ(deep_number(i % 7), 5);
      number.get() = i;
      for (int turn = 0; turn < 3; ++turn) {
        all->suspend();
        EXPECT_EQ(deep_number(turn), i + turn);
        ++*number.find();
      }
      ++ended;
    });
  }
  all->run();
  EXPECT_EQ(ended, 40);
}

TEST_P(locals_in_turns, bodies_without_values_are_among_them) {
  const auto all = GetParam().make();
  for (int i = 0; i < 12; ++i) {
    all->add([&, i] {
      if (i % 3 == 0) {
        number.get() = i;
      }
      all->suspend();
      EXPECT_EQ(number.find() != nullptr, i % 3 == 0);
    });
  }
  all->run();
}

TEST_P(locals_in_turns, values_end_with_their_body) {
  const auto owned = std::make_shared<int>(1);
  const auto all = GetParam().make();
  all->add([&] {
    held.get() = owned;
    all->suspend();
  });
  all->add([&] {
    all->suspend();
    all->suspend();
    EXPECT_EQ(owned.use_count(), 1);
    EXPECT_EQ(held.find(), nullptr);
  });
  all->run();
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_P(locals_in_turns, values_end_when_a_body_is_unwound) {
  struct looks {
    int* to;
    ~looks() { *to = *number.find(); }
  };
  const auto owned = std::make_shared<int>(1);
  int seen[2] = {};
  const auto all = GetParam().make();
  for (int i = 0; i < 2; ++i) {
    all->add([&, i] {
      const looks last{&seen[i]};
      number.get() = 12 + i;
      held.get() = owned;
      all->suspend();
      ADD_FAILURE() << "it is unwound";
    });
  }
  all->begin_and_drop();
  EXPECT_EQ(seen[0], 12);
  EXPECT_EQ(seen[1], 13);
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_P(locals_in_turns, values_end_when_an_exception_leaves_a_body) {
  const auto owned = std::make_shared<int>(1);
  const auto all = GetParam().make();
  all->add([&] {
    held.get() = owned;
    all->suspend();
    throw std::runtime_error("expected");
  });
  all->add([&] {
    number.get() = 3;
    all->suspend();
    all->suspend();
    EXPECT_EQ(number.get(), 3);
  });
  EXPECT_THROW(all->run(), std::runtime_error);
  EXPECT_EQ(owned.use_count(), 1);
  all->run();
}

TEST_P(locals_in_turns, a_destructor_finds_older_values_and_may_make_new_ones) {
  struct looks {
    int* to = nullptr;
    ~looks() {
      if (to != nullptr) {
        *to = *number.find();
        held.get() = std::make_shared<int>(1);
      }
    }
  };
  const pirn::coroutine_local<looks> last;
  int seen = 0;
  const auto all = GetParam().make();
  all->add([&] {
    number.get() = 17;
    last.get().to = &seen;
  });
  all->add([&] { EXPECT_EQ(number.find(), nullptr); });
  all->run();
  EXPECT_EQ(seen, 17);
}

TEST_P(locals_in_turns, the_next_body_at_the_same_place_has_no_values) {
  for (int i = 0; i < 3; ++i) {
    const auto all = GetParam().make();
    all->add([] {
      EXPECT_EQ(number.find(), nullptr);
      number.get() = 1;
    });
    all->run();
  }
}

TEST_P(locals_in_turns, other_threads_find_the_same_values) {
  const auto all = GetParam().make();
  for (int i = 0; i < 3; ++i) {
    all->add([&, i] {
      for (int turn = 0; turn < 3; ++turn) {
        EXPECT_EQ(deep_number(turn), turn == 0 ? 5 : 20 + i);
        number.get() = 20 + i;
        all->suspend();
      }
    });
  }
  all->run_on_threads();
}

// ---- kinds inside each other ----------------------------------------------------------------------------------------

TEST_P(locals_in_turns, the_innermost_body_of_any_two_kinds_counts) {
  for (const kind& inner_kind : kinds) {
    SCOPED_TRACE(inner_kind.name);
    const auto outer = GetParam().make();
    int ended = 0;
    for (int i = 0; i < 3; ++i) {
      outer->add([&, i] {
        number.get() = i;
        const auto inner = inner_kind.make();
        for (int j = 0; j < 3; ++j) {
          inner->add([&, i, j] {
            EXPECT_EQ(number.find(), nullptr);
            number.get() = 100 + 10 * i + j;
            inner->suspend();
            EXPECT_EQ(deep_number(1), 100 + 10 * i + j);
            inner->suspend();
            EXPECT_EQ(deep_number(0), 100 + 10 * i + j);
            ++ended;
          });
        }
        EXPECT_EQ(number.get(), i);
        inner->run();
        EXPECT_EQ(number.get(), i);
        outer->suspend();
        EXPECT_EQ(deep_number(3), i);
      });
    }
    outer->run();
    EXPECT_EQ(ended, 9);
  }
}

TEST_P(locals_in_turns, a_body_in_a_frame_does_not_get_their_values) {
  const auto all = GetParam().make();
  all->add([&] {
    number.get() = 1;
    {
      pirn::frame_buffer<16384> buffer;
      pirn::coroutine<void()> inner(buffer, [](auto& yields) {
        EXPECT_EQ(number.find(), nullptr);
        EXPECT_THROW(static_cast<void>(number.get()), std::logic_error);
        number.get(yields) = 3;
      });
      inner.resume();
      EXPECT_EQ(deep_number(4), 1);
    }
    all->suspend();
    EXPECT_EQ(number.get(), 1);
  });
  all->run();
}

TEST_P(locals_in_turns, a_generator_has_no_values_and_its_consumer_keeps_its_own) {
  const auto all = GetParam().make();
  all->add([&] {
    number.get() = 4;
    const auto body = [](auto& yields) {
      EXPECT_EQ(number.find(), nullptr);
      yields(1);
      EXPECT_THROW(static_cast<void>(number.get()), std::logic_error);
    };
    for (const int each : pirn::generator<int>(body)) {
      EXPECT_EQ(number.get(), 3 + each);
    }
    EXPECT_EQ(number.get(), 4);
  });
  all->run();
}

TEST_P(locals_in_turns, a_generator_body_in_the_loop_of_its_consumer_has_the_values_of_that) {
  const auto all = GetParam().make();
  all->add([&] {
    number.get() = 4;
    int sum = 0;
    pirn::for_each<int>(
        [](auto& yields) {
          yields(number.get());
          yields(deep_number(3) + 1);
        },
        [&sum](int each) { sum += each; });
    EXPECT_EQ(sum, 9);
  });
  all->run();
}

TEST_P(locals_in_turns, a_task_finds_its_values_where_one_that_runs_another_dispatcher_was) {
  if (GetParam().make == &made<copied_and_protected>) {
    return;  // the place of a dispatcher is another stack to it, where it refuses to yield
  }
  const auto outer = GetParam().make();
  outer->add([&] {
    number.get() = 1;
    world inner;
    inner.spawn([&] {
      number.get() = 2;
      outer->suspend();  // with the frames of the inner dispatcher
      EXPECT_EQ(number.get(), 2);
    });
    EXPECT_EQ(inner.swap.run(), pirn::swap_error::none);
    EXPECT_EQ(number.get(), 1);
  });
  outer->add([&] {
    number.get() = 3;
    EXPECT_EQ(number_below(10), 3);
    outer->suspend();
    EXPECT_EQ(number_below(10), 3);
  });
  outer->run();
}

/// Dispatchers in bodies that take turns on one stack: each one's place is `apart` bytes below the one before.
void run_dispatchers_in_turns(const kind& of, int apart) {
  if (of.make == &made<copied_and_protected>) {
    return;  // the place of a dispatcher is another stack to it, where it refuses to yield
  }
  const auto outer = of.make();
  for (int i = 1; i <= 3; ++i) {
    outer->add([&, i] {
      *static_cast<volatile char*>(__builtin_alloca(i * apart + 1)) = 1;
      if (i == 3) {
        outer->suspend();  // until the first one has ended: its entry, which is found before the second one's, is free
      }
      const auto inner = std::make_unique<world>();
      inner->spawn([&, i] {
        number.get() = 10 * i;
        for (int turn = 0; turn < i; ++turn) {  // the others end their dispatchers meanwhile
          outer->suspend();
          EXPECT_EQ(deep_number(2), 10 * i);
        }
      });
      EXPECT_EQ(inner->swap.run(), pirn::swap_error::none);
      number.get() = i;
      outer->suspend();
      EXPECT_EQ(number.get(), i);
    });
  }
  outer->run();
}

TEST_P(locals_in_turns, tasks_of_dispatchers_at_the_same_place_keep_their_values) {
  run_dispatchers_in_turns(GetParam(), 0);
}

TEST_P(locals_in_turns, tasks_of_dispatchers_at_places_one_below_the_other_keep_their_values) {
  for (const int apart : {16, 32, 64, 128}) {
    run_dispatchers_in_turns(GetParam(), apart);
  }
}

}  // namespace
