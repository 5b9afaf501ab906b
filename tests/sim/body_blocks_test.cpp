// Scopes and bound values that are open in a body while it is suspended. Events on other workers meanwhile affect the
// body, and not its consumer.
#include <pirn/coro/coroutine.hpp>
#include <pirn/coro/generator.hpp>
#include <pirn/fiber/context_value.hpp>
#include <pirn/fiber/fork_join.hpp>
#include <pirn/fiber/scope.hpp>
#include <pirn/sync/event.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "pirn/sim/var.hpp"
#include "sim/together.hpp"
#include "sim/watched_runtime.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using pirn_test::expect_passes;
using pirn_test::run_together;
using pirn_test::soon;
using pirn_test::watched_runtime;

namespace {

using pause = const std::function<void()>&;

const context_value<int> number, other;
using bound = context_value<int>::binding;
int bound_here() { return number.get() != nullptr ? *number.get() : 0; }

/// A generator that is advanced by one element at a time.
class iterated {
 public:
  explicit iterated(generator<int> inside) : inside_(std::move(inside)) {}
  void resume() {
    if (at_) {
      ++*at_;
    } else {
      at_.emplace(inside_.begin());
    }
  }

 private:
  generator<int> inside_;
  std::optional<generator<int>::iterator> at_;
};

/// The kinds of bodies. Each calls `f` with a function that suspends the body.
class in_generator : public iterated {
 public:
  explicit in_generator(std::function<void(pause)> f)
      : iterated([f = std::move(f)](auto& yield) { f([&] { yield(0); }); }) {}
};

/// A body to which another body delegates. The other body has a separate value bound and a separate scope open.
class in_delegate : public iterated {
 public:
  explicit in_delegate(std::function<void(pause)> f)
      : iterated([f = std::move(f)](generator<int>::yield& yield) {
          const bound own(number, 77);
          const scope around;
          yield(elements_of(generator<int>([&f](generator<int>::yield& deeper) { f([&] { deeper(0); }); })));
          sim::check(bound_here() == 77, "the value of who delegates");
        }) {}
};

class in_coroutine {
 public:
  explicit in_coroutine(std::function<void(pause)> f)
      : inside_([f = std::move(f)](auto& yield) { f([&] { yield(); }); }) {}
  void resume() { inside_.resume(); }

 private:
  coroutine<void()> inside_;
};

template <class Program>
void with_each_body(Program&& program) {
  program.template operator()<in_generator>();
  program.template operator()<in_delegate>();
  program.template operator()<in_coroutine>();
}

struct failure : std::runtime_error {
  failure() : runtime_error("as expected") {}
};

template <class Join>
bool fails(Join&& join) {
  try {
    join();
    return false;
  } catch (const failure&) {
    return true;
  }
}

/// Runs `f` as a fiber of worker 0, beside another worker.
void on_worker_0(const std::function<void()>& f, bool migratable = false) {
  watched_runtime all(2);
  fiber runs = all->spawn(f, {.worker = 0, .migratable = migratable});
  all.watch();
  runs.join();
  all.done();
}

/// All executions with stale reads are too many, so random ones are tried.
const sim::options where_words_are_old{.strategy = sim::strategy::random, .stale_reads = true, .executions = 3000};

// ---- children ------------------------------------------------------------------------------------------------------

/// The consumer waits for an event that follows the child's failure, on the child's worker.
template <class Body>
void a_child_fails() {
  on_worker_0([] {
    event never, happened;
    sim::var<int> ran(0);
    bool left = false;
    {
      Body body([&](pause suspend) {
        const bound own(number, 1);
        scope its;
        its.spawn(
            [&] {
              sim::check(bound_here() == 1, "a child has the value of the body");
              ran += 1;
              throw failure();
            },
            {.worker = 1});
        suspend();
        sim::check(bound_here() == 1, "the body has its own value");
        sim::check(never.wait() == std::unexpected(wait_error::stopped), "the failure stops the scope");
        sim::check(fails([&] { its.join(); }) && ran == 1, "and arrives where the scope is joined");
        left = true;
      });
      const bound own(number, 2);
      body.resume();
      fiber later = spawn([&] { happened.set(); }, {.worker = 1});
      sim::check(bound_here() == 2, "the consumer has its own value");
      sim::check(happened.wait().has_value() && this_fiber::check_stop().has_value(), "and goes on");
      body.resume();
      sim::check(left && bound_here() == 2 && this_fiber::check_stop().has_value(), "so too when the scope is left");
      later.join();
    }
    sim::check(bound_here() == 0);
  });
}
TEST(body_blocks, a_child_that_fails_stops_the_body_only) {
  with_each_body([]<class Body> { expect_passes(a_child_fails<Body>); });
}
TEST(body_blocks, a_child_that_fails_stops_the_body_only_where_words_are_old) {
  expect_passes(a_child_fails<in_generator>, where_words_are_old);
}

/// The body is suspended again and again, while one child fails and the other waits for the resulting stop. The memory
/// of the scope is freed as soon as the scope is left, so that a later access is seen.
TEST(body_blocks, a_child_fails_between_any_two_resumes) {
  expect_passes([] {
    on_worker_0([] {
      event never;
      sim::var<int> stopped(0);
      bool left = false;
      in_generator body([&](pause suspend) {
        auto its = std::make_unique<scope>();
        its->spawn([&] { stopped += never.wait() == std::unexpected(wait_error::stopped) ? 1 : 0; }, {.worker = 1});
        suspend();
        its->spawn([] { throw failure(); }, {.worker = 1});
        suspend();
        sim::check(never.wait() == std::unexpected(wait_error::stopped),
                   "the failure stops the body, whenever it comes");
        suspend();
        sim::check(fails([&] { its->join(); }) && stopped == 1, "no child is lost");
        its.reset();
        suspend();
        left = true;
      });
      while (!left) {
        body.resume();
        sim::check(this_fiber::check_stop().has_value(), "the consumer is not stopped");
      }
    });
  });
}

TEST(body_blocks, a_child_ends_while_its_body_is_dropped) {
  with_each_body([]<class Body> {
    expect_passes([] {
      on_worker_0([] {
        event never, happened;
        sim::var<int> ended(0);
        int seen = 0;
        {
          struct at_end {
            int& seen;
            ~at_end() { seen = bound_here(); }
          };
          Body body([&](pause suspend) {
            const bound own(number, 1);
            const at_end last{seen};
            scope its;
            its.spawn(
                [&] {
                  happened.set();
                  static_cast<void>(never.wait());
                  ended += 1;
                },
                {.worker = 1});
            suspend();
            sim::check(false, "it is unwound");
          });
          body.resume();
          static_cast<void>(happened.wait());
        }
        sim::check(ended == 1 && seen == 1, "the child has ended, and the value was the body's");
        sim::check(bound_here() == 0 && this_fiber::check_stop().has_value());
      });
    });
  });
}

// ---- stops and deadlines -------------------------------------------------------------------------------------------

/// A stop of the consumer, or of a scope around the resume. When it comes, the body's scope is in a list or not.
template <class Body>
void a_stop_comes(bool of_the_fiber) {
  watched_runtime all(2);
  event never;
  stop_source source;
  bool left = false;
  fiber consumes = all->spawn(
      [&] {
        Body body([&](pause suspend) {
          auto its = std::make_unique<scope>();
          its->spawn([&] { sim::check(never.wait() == std::unexpected(wait_error::stopped), "a child is stopped"); },
                     {.worker = 1});
          suspend();
          its->join();
          sim::check(this_fiber::check_stop() == std::unexpected(wait_error::stopped), "and so is the body");
          its.reset();
          left = true;
        });
        body.resume();
        {
          const scope around({.stop = source.get_token()});
          body.resume();
        }
        sim::check(left && this_fiber::check_stop().has_value() != of_the_fiber, "a stop of a scope is over with it");
      },
      {.worker = 0});
  fiber stops =
      all->spawn([&] { of_the_fiber ? consumes.request_stop() : void(source.request_stop()); }, {.worker = 1});
  all.watch();
  consumes.join();
  stops.join();
  all.done();
}
TEST(body_blocks, a_stop_of_the_consumer_reaches_the_body) {
  expect_passes([] { a_stop_comes<in_delegate>(true); });
}
TEST(body_blocks, a_stop_around_the_resume_reaches_the_body) {
  expect_passes([] { a_stop_comes<in_coroutine>(false); });
}

TEST(body_blocks, a_deadline_that_passes_is_the_bodys) {
  expect_passes([] {
    on_worker_0([] {
      event never, happened;
      const platform::time_point when = soon();
      fiber sets = spawn(
          [&] {
            static_cast<void>(this_fiber::sleep_until(when));
            happened.set();
          },
          {.worker = 1});
      bool left = false;
      in_generator body([&](pause suspend) {
        const scope its({.deadline = when});
        suspend();
        sim::check(never.wait() == std::unexpected(wait_error::expired), "the body's waits end");
        left = true;
      });
      body.resume();
      sim::check(this_fiber::deadline() == platform::never && happened.wait().has_value(), "the consumer's do not");
      body.resume();
      sim::check(left && this_fiber::check_stop().has_value());
      sets.join();
    });
  });
}

// ---- handed on -----------------------------------------------------------------------------------------------------

/// A value moves along to another worker, while a child that has inherited it reads it and ends.
template <class Body>
void a_value_goes_along() {
  watched_runtime all(2);
  event handed_on;
  std::optional<Body> body;
  int turns = 0;
  fiber first = all->spawn(
      [&] {
        const bound own(number, 2);
        const bound older_key(other, 5);
        scope children;
        body.emplace([&](pause suspend) {
          const bound older(number, 3);
          const bound its(number, 1);
          children.spawn(
              [] {
                sim::check(bound_here() == 1, "a child keeps it");
                sim::check(other.get() != nullptr && *other.get() == 5, "and what is older");
              },
              {.worker = 1});
          for (; turns < 2; ++turns) {
            suspend();
            sim::check(bound_here() == 1, "the body keeps it");
          }
        });
        body->resume();
        sim::check(bound_here() == 2, "the consumer has its own");
        handed_on.set();
        children.join();
        sim::check(bound_here() == 2);
      },
      {.worker = 0});
  fiber second = all->spawn(
      [&] {
        static_cast<void>(handed_on.wait());
        const bound own(number, 4);
        body->resume();
        sim::check(bound_here() == 4, "the other consumer has its own");
        body->resume();
        sim::check(turns == 2 && bound_here() == 4);
      },
      {.worker = 1});
  all.watch();
  first.join();
  second.join();
  all.done();
}
TEST(body_blocks, a_value_goes_along_to_another_worker) {
  expect_passes(a_value_goes_along<in_generator>);
  expect_passes(a_value_goes_along<in_coroutine>);
}
TEST(body_blocks, a_value_goes_along_where_words_are_old) {
  expect_passes(a_value_goes_along<in_generator>, where_words_are_old);
}

TEST(body_blocks, a_scope_does_not_go_along) {
  testing::internal::CaptureStderr();
  const sim::result found = sim::explore([] {
    event handed_on;
    std::optional<in_coroutine> body;
    run_together({[&] {
                    body.emplace([](pause suspend) {
                      const scope its;
                      suspend();
                    });
                    body->resume();
                    handed_on.set();
                  },
                  [&] {
                    static_cast<void>(handed_on.wait());
                    body->resume();
                    sim::check(false, "it is refused");
                  }});
  });
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(found.what, sim::outcome::aborted) << found.text();
  EXPECT_NE(said.find("resumed or destroyed by a fiber"), said.npos) << said;
}

// ---- thieves -------------------------------------------------------------------------------------------------------

/// The consumer forks while one of its bodies is suspended, whose child fails on any worker.
void it_forks_meanwhile() {
  on_worker_0(
      [] {
        sim::var<int> halves[2] = {0, 0};
        sim::var<int> ran(0);
        bool left = false;
        in_generator body([&](pause suspend) {
          const bound own(number, 1);
          scope its;
          its.spawn(
              [&] {
                sim::check(bound_here() == 1);
                ran += 1;
                throw failure();
              },
              {.worker = 1});
          suspend();
          sim::check(bound_here() == 1 && fails([&] { its.join(); }) && ran == 1, "no child is lost");
          left = true;
        });
        const bound own(number, 2);
        body.resume();
        const auto half = [&](int which) {
          return [&, which] {
            sim::check(bound_here() == 2 && this_fiber::check_stop().has_value(), "nothing is the body's");
            const bound its(number, 3 + which);
            halves[which] += 1;
            sim::check(bound_here() == 3 + which);
          };
        };
        fork2(half(0), half(1));
        sim::check(halves[0] == 1 && halves[1] == 1 && bound_here() == 2);
        body.resume();
        sim::check(left && bound_here() == 2 && this_fiber::check_stop().has_value());
      },
      true);
}
TEST(body_blocks, the_consumer_forks_meanwhile) { expect_passes(it_forks_meanwhile); }

/// A body yields in a first half, with blocks open there, and its consumer forks meanwhile. Thieves may take both
/// second halves. The first halves end in the other order.
void it_yields_in_a_first_half() {
  on_worker_0(
      [] {
        sim::var<int> seconds[2] = {0, 0};
        sim::var<int> ran(0);
        bool left = false;
        in_generator body([&](pause suspend) {
          const bound own(number, 1);
          fork2(
              [&] {
                const bound half(number, 2);
                scope its;
                its.spawn([&] {
                  sim::check(bound_here() == 2, "a child has the value of its half");
                  ran += 1;
                });
                suspend();
                sim::check(bound_here() == 2, "the half has its own value");
                its.join();
                sim::check(ran == 1, "its child has ended");
              },
              [&] {
                sim::check(bound_here() == 1, "the value around the call");
                seconds[0] += 1;
              });
          sim::check(bound_here() == 1 && seconds[0] == 1);
          left = true;
        });
        const bound own(number, 9);
        body.resume();
        sim::check(bound_here() == 9, "nothing of the half is left behind");
        fork2([&] { body.resume(); },
              [&] {
                sim::check(bound_here() == 9, "the consumer's");
                seconds[1] += 1;
              });
        sim::check(left && seconds[1] == 1 && bound_here() == 9);
      },
      true);
}
TEST(body_blocks, a_first_half_yields) { expect_passes(it_yields_in_a_first_half); }

/// The consumer of such a generator closes a scope and unbinds a value that the second half inherits. The scope waits
/// for that half, wherever it runs. The memory of the scope is freed then, so that a later access is seen.
void its_consumer_closes_blocks() {
  on_worker_0(
      [] {
        sim::var<int> ran(0);
        std::optional<in_generator> body(std::in_place, [&](pause suspend) {
          const bound own(number, 1);
          fork2(suspend, [&] {
            sim::check(bound_here() == 1 && *other.get() == 7, "the values around the call");
            sim::check(this_fiber::deadline() != never, "and the scope around it");
            ran += 1;
          });
          sim::check(bound_here() == 1, "the body has its own value");
        });
        {
          auto around = std::make_unique<scope>(scope_options{.deadline = clock::now() + 1h});
          const bound of_consumer(other, 7);
          body->resume();
          around.reset();
        }
        sim::check(ran == 1, "the scope has waited for the half");
        body->resume();
        sim::check(ran == 1 && bound_here() == 0 && other.get() == nullptr);
      },
      true);
}
TEST(body_blocks, the_consumer_of_such_a_generator_closes_blocks) { expect_passes(its_consumer_closes_blocks); }

/// Each half of a fork has a body with a scope. The second half may be a stolen continuation on another worker.
void each_half_has_a_body() {
  on_worker_0(
      [] {
        const auto half = [](int which) {
          return [which] {
            sim::var<int> ran(0);
            in_coroutine body([&](pause suspend) {
              const bound own(number, which);
              scope its;
              its.spawn([&] {
                sim::check(bound_here() == which, "a child has the value of its body");
                ran += 1;
              });
              suspend();
              sim::check(bound_here() == which, "the body has its own value");
              its.join();
              sim::check(ran == 1, "its child has ended");
              suspend();
              sim::check(bound_here() == which, "also behind a wait");
            });
            body.resume();
            sim::check(bound_here() == 9, "the value of who forks");
            body.resume();
            sim::check(bound_here() == 9, "also after the body has waited");
            body.resume();
            sim::check(ran == 1 && bound_here() == 9);
          };
        };
        const bound own(number, 9);
        fork2(half(1), half(2));
        sim::check(bound_here() == 9);
      },
      true);
}
TEST(body_blocks, each_half_of_a_fork_has_one) { expect_passes(each_half_has_a_body); }

}  // namespace
