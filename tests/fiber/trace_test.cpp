// Each fiber of a traced runtime goes through its states one after the other, whatever it does. Also workers' counts.
#include "pirn/fiber/expert/trace.hpp"

#include <map>
#include <string>

#include "fiber/support.hpp"
#include "pirn/fiber/expert/wait_set.hpp"
#include "pirn/fiber/scope.hpp"

namespace {

using namespace pirn_test;
using kind = pirn::trace_event::kind;

struct told {
  kind what;
  std::uint64_t fiber;
  std::string name;
  std::uint64_t by;
  int worker;
  std::string reason;
  const void* object;
};

/// Keeps all events, with the events of one fiber in the right order.
class recorder {
 public:
  [[nodiscard]] pirn::tracer tracer() {
    return [this](const pirn::trace_event& e) {
      const pirn::platform::spin_guard guard(lock_);
      events_.push_back(
          {e.what, e.fiber, std::string(e.name), e.by, e.worker, e.reason != nullptr ? e.reason : "", e.object});
    };
  }
  /// Returns the events of the fiber of that name. Only valid while the runtime does nothing.
  [[nodiscard]] std::vector<told> of(const std::string& name) const {
    std::vector<told> found;
    std::copy_if(events_.begin(), events_.end(), std::back_inserter(found),
                 [&](const told& each) { return each.name == name; });
    return found;
  }
  [[nodiscard]] const std::vector<told>& all() const { return events_; }

 private:
  pirn::platform::spinlock lock_;
  std::vector<told> events_;
};

pirn::runtime_options traced(recorder& into) {
  pirn::runtime_options options;
  options.trace = into.tracer();
  return options;
}

TEST(trace, tells_the_life_of_a_fiber) {
  recorder events;
  std::uint64_t parent = 0;
  event bell;
  {
    rig r(1, traced(events));
    r.rt.run([&] {
      parent = pirn::this_fiber::number();
      pirn::fiber child = pirn::spawn(
          [&] {
            pirn::this_fiber::yield();
            bell.wait({.what = "a bell", .object = &bell});
          },
          {.name = "child"});
      pirn::this_fiber::yield();
      pirn::this_fiber::yield();
      bell.signal();
      child.join();
    });
  }
  const std::vector<told> life = events.of("child");
  const std::vector<kind> expected = {kind::spawned,   kind::started, kind::suspended, kind::resumed,
                                      kind::suspended, kind::woken,   kind::resumed,   kind::ended};
  ASSERT_EQ(life.size(), expected.size());
  for (std::size_t i = 0; i < life.size(); ++i) {
    EXPECT_EQ(life[i].what, expected[i]) << i;
    EXPECT_EQ(life[i].worker, 0) << i;
    EXPECT_EQ(life[i].by, life[i].what == kind::spawned || life[i].what == kind::woken ? parent : 0) << i;
  }
  EXPECT_EQ(life[2].reason, "its turn");
  EXPECT_EQ(life[4].reason, "a bell");
  EXPECT_EQ(life[4].object, &bell);
}

TEST(trace, tells_what_a_plain_thread_does) {
  recorder events;
  event bell;
  {
    rig r(2, traced(events));
    pirn::fiber f = r.rt.spawn([&] { bell.wait(); }, {.name = "waits", .worker = 1});
    ASSERT_TRUE(eventually([&] { return r.rt.statistics(1).switches != 0; }));
    bell.signal();
    f.join();
  }
  const std::vector<told> life = events.of("waits");
  ASSERT_EQ(life.size(), 6u);
  EXPECT_EQ(life[0].what, kind::spawned);
  EXPECT_EQ(life[0].worker, -1);
  EXPECT_EQ(life[1].worker, 1);
  EXPECT_EQ(life[3].what, kind::woken);
  EXPECT_EQ(life[3].worker, -1);
  EXPECT_EQ(life[3].by, 0u);
}

/// The state in which the events so far leave a fiber.
enum class state : std::uint8_t { none, fresh, ready, running, waiting, done };

state after(state now, const told& e) {
  switch (e.what) {
    case kind::spawned:
      return now == state::none ? state::fresh : state::none;
    case kind::started:
      return now == state::fresh ? state::running : state::none;
    case kind::resumed:
      return now == state::ready ? state::running : state::none;
    case kind::suspended:
      return now != state::running ? state::none : e.reason == "its turn" ? state::ready : state::waiting;
    case kind::woken:
      return now == state::waiting ? state::ready : state::none;
    case kind::ended:
      return now == state::running ? state::done : state::none;
  }
  return state::none;
}

TEST(trace, follows_each_fiber_from_state_to_state) {
  recorder events;
  {
    rig r(2, traced(events));
    pirn::runtime& rt = r.rt;
    rt.run([&] {
      event bell;
      const auto work = [&](unsigned seed) {
        pirn::platform::random numbers(seed);
        for (int i = 0; i < scaled(300); ++i) {
          switch (numbers.next() % 7) {
            case 0:
              static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::microseconds(numbers.next() % 50)));
              break;
            case 1:
              bell.signal();
              break;
            case 2:
              static_cast<void>(bell.wait({.deadline = clock::now() + 100us}));
              break;
            case 3:
              pirn::spawn([] { pirn::this_fiber::yield(); }).join();
              break;
            case 4: {
              pirn::scope s;
              s.spawn([] {}, {.worker = static_cast<int>(numbers.next() % 2)});
              s.spawn([] { static_cast<void>(pirn::this_fiber::sleep_for(1h)); });
              s.request_stop();
              s.join();
              break;
            }
            case 5:
              pirn::spawn([] { pirn::this_fiber::yield(); },
                          {.worker = pirn::spawn_options::any_worker, .migratable = numbers.next() % 2 == 0})
                  .detach();
              break;
            default:
              try {
                throw 1;
              } catch (int) {
                pirn::this_fiber::yield();
              }
          }
        }
      };
      std::vector<pirn::fiber> workers;
      for (unsigned i = 0; i < 6; ++i) {
        workers.push_back(
            pirn::spawn([&, i] { work(i); }, {.worker = static_cast<int>(i % 2), .migratable = i % 3 == 0}));
      }
      join_all(workers);
    });
  }
  std::map<std::uint64_t, state> fibers;
  for (const told& each : events.all()) {
    state& now = fibers[each.fiber];
    const state next = after(now, each);
    ASSERT_NE(next, state::none) << "fiber " << each.fiber << " in state " << static_cast<int>(now) << ", then event "
                                 << static_cast<int>(each.what) << " " << each.reason;
    now = next;
  }
  for (const auto& [fiber, now] : fibers) {
    EXPECT_EQ(now, state::done) << fiber;
  }
}

TEST(trace, measures_the_longest_wait_for_a_turn) {
  recorder events;
  rig r(1, traced(events));
  r.rt.run([] {
    pirn::fiber second = pirn::spawn([] {});
    const auto begun = clock::now();
    compute_until([&] { return clock::now() - begun > 20ms; });
    second.join();
  });
  EXPECT_GE(r.rt.statistics(0).longest_wait, 20ms);
}

TEST(trace, is_not_needed_to_count_switches_and_ready_fibers) {
  rig r(1);
  constexpr int fibers = 7;
  constexpr int yields = 1000;
  std::atomic<bool> stop{false};
  std::vector<pirn::fiber> all;
  const std::uint64_t before = r.rt.statistics(0).switches;
  r.rt.run([&] {
    pirn::fiber other = pirn::spawn([] {
      for (int i = 0; i < yields; ++i) {
        pirn::this_fiber::yield();
      }
    });
    other.join();
  });
  ASSERT_TRUE(eventually([&] { return r.rt.statistics(0).switches - before >= yields + 3; }));
  EXPECT_LE(r.rt.statistics(0).switches - before, yields + 3u);
  for (int i = 0; i < fibers; ++i) {
    all.push_back(r.rt.spawn([&] {
      while (!stop) {
        pirn::this_fiber::yield();
      }
    }));
  }
  EXPECT_TRUE(eventually([&] { return r.rt.statistics(0).ready == fibers; })) << r.rt.statistics(0).ready;
  stop = true;
  join_all(all);
  EXPECT_TRUE(eventually([&] { return r.rt.statistics(0).ready == 0; }));
}

}  // namespace
