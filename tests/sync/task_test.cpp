// Tasks and the operations that they await: pirn/fiber/task.hpp, pirn/fiber/co.hpp and pirn/sync/co.hpp.
#include "pirn/fiber/task.hpp"

#include <coroutine>
#include <numeric>

#include "fiber/support.hpp"
#include "pirn/sync/co.hpp"
#include "pirn/sync/expert/local.hpp"
#include "pirn/sync/latch.hpp"
#include "pirn/sync/mutex.hpp"

namespace {

using namespace pirn_test;
using pirn::await;
using pirn::channel;
using pirn::task;
using pirn::wait_error;
namespace co = pirn::co;

task<int> twice(int number) {
  co_await co::yield();
  co_return 2 * number;
}

TEST(task, returns_and_throws_through_chains) {
  rig r(1);
  r.rt.run([] {
    EXPECT_EQ(await(twice(4)), 8);
    const auto sum = [](int upto) -> task<int> {
      int all = 0;
      for (int i = 0; i < upto; ++i) {
        all += co_await twice(i);
      }
      co_return all;
    };
    EXPECT_EQ(await(sum(100)), 9900);
    const auto thrower = []() -> task<> {
      EXPECT_TRUE((co_await co::sleep_for(1us)).has_value());
      throw std::runtime_error("x");
    };
    const auto catcher = [&]() -> task<std::unique_ptr<int>> {
      try {
        co_await thrower();
      } catch (const std::runtime_error&) {
        co_return std::make_unique<int>(7);
      }
      co_return nullptr;
    };
    EXPECT_EQ(*await(catcher()), 7);
    EXPECT_THROW(await(thrower()), std::runtime_error);
    int place = 1;
    const auto referring = [&]() -> task<int&> { co_return place; };
    await(referring()) = 5;
    EXPECT_EQ(place, 5);
    bool begun = false;
    {
      const auto unbegun = [](bool& mark) -> task<> {
        mark = true;
        co_return;
      };
      task<> never = unbegun(begun);
      task<> moved = std::move(never);
    }
    EXPECT_FALSE(begun);
  });
  EXPECT_THROW(await(twice(1)), std::system_error);  // on a plain thread
}

task<> ping(channel<int>& out, channel<int>& in, int turns) {
  for (int i = 0; i < turns; ++i) {
    EXPECT_TRUE((co_await co::send(out, int{i})).has_value());
    EXPECT_EQ(co_await co::receive(in), i);
  }
  out.close();
}

task<> pong(channel<int>& in, channel<int>& out) {
  while (const auto value = co_await co::receive(in)) {
    EXPECT_TRUE((co_await co::send(out, int{*value})).has_value());
  }
  EXPECT_EQ((co_await co::send(in, 1)).error(), wait_error::closed);
}

TEST(task, exchanges_values_with_tasks_fibers_and_threads_of_any_worker) {
  rig r(2);
  for (const std::size_t room : {std::size_t{0}, std::size_t{1}}) {
    for (const int other : {0, 1}) {
      channel<int> there(room);
      channel<int> back(room);
      pirn::fiber a = r.rt.spawn([&] { await(ping(there, back, scaled(500))); }, {.worker = 0});
      pirn::fiber b = r.rt.spawn([&] { await(pong(there, back)); }, {.worker = other});
      a.join();
      b.join();
    }
    channel<int> there(room);
    channel<int> back(room);
    pirn::fiber a = r.rt.spawn([&] { await(ping(there, back, scaled(500))); });
    const auto answer = [&] {
      while (const auto value = there.receive()) {
        EXPECT_TRUE(back.send(*value).has_value());
      }
    };
    if (room == 0) {
      r.rt.spawn(answer).join();
    } else {
      answer();  // on this plain thread
    }
    a.join();
  }
}

TEST(task, many_at_once) {
  rig r(2);
  channel<int> numbers(4);
  std::atomic<long> sum = 0;
  std::vector<pirn::fiber> all;
  const auto take = [](channel<int>& from, std::atomic<long>& into) -> task<> {
    while (const auto value = co_await co::receive(from)) {
      into += *value;
      co_await co::yield();
    }
  };
  for (int i = 0; i < 20; ++i) {
    all.push_back(r.rt.spawn([&] { await(take(numbers, sum)); }));
  }
  const int count = scaled(5000);
  r.rt.run([&] {
    const auto give = [](channel<int>& to, int upto) -> task<> {
      for (int i = 1; i <= upto; ++i) {
        EXPECT_TRUE((co_await co::send(to, int{i})).has_value());
      }
    };
    await(give(numbers, count));
    numbers.close();
  });
  join_all(all);
  EXPECT_EQ(sum, static_cast<long>(count) * (count + 1) / 2);
}

TEST(task, waits_take_turns_with_those_of_fibers) {
  rig r(1);
  r.rt.run([] {
    int turns = 0;
    bool over = false;
    pirn::fiber other = pirn::spawn([&] {
      while (!over) {
        ++turns;
        pirn::this_fiber::yield();
      }
    });
    const auto busy = []() -> task<> {
      for (int i = 0; i < 1000; ++i) {
        co_await co::yield();
      }
    };
    await(busy());
    EXPECT_GE(turns, 100);  // one turn for each eight steps
    const auto start = clock::now();
    const auto sleeper = []() -> task<bool> { co_return (co_await co::sleep_for(3ms)).has_value(); };
    EXPECT_TRUE(await(sleeper()));
    EXPECT_GE(clock::now() - start, 3ms);
    over = true;
    other.join();
  });
}

TEST(task, joins_fibers) {
  rig r(2);
  r.rt.run([] {
    const auto joiner = []() -> task<int> {
      int seen = 0;
      for (const int where : {0, 1, 0, 1}) {
        pirn::fiber f = pirn::spawn(
            [&] {
              static_cast<void>(pirn::this_fiber::sleep_for(200us));
              ++seen;
            },
            {.worker = where});
        co_await f;
        EXPECT_FALSE(f.joinable());
      }
      pirn::fiber thrower = pirn::spawn([] { throw 3; });
      try {
        co_await thrower;
      } catch (int what) {
        seen += what;
      }
      event stop;
      pirn::fiber slow = pirn::spawn([&] { static_cast<void>(stop.wait({.stoppable = false})); });
      EXPECT_EQ((co_await co::join(slow, clock::now() + 1ms)).error(), wait_error::timed_out);
      EXPECT_TRUE(slow.joinable());
      stop.signal();
      EXPECT_TRUE((co_await co::join(slow)).has_value());
      pirn::fiber ended = pirn::spawn([] {});
      pirn::this_fiber::yield();
      co_await ended;
      bool refused = false;
      try {
        co_await ended;
      } catch (const std::system_error&) {
        refused = true;
      }
      co_return refused ? seen : 0;
    };
    EXPECT_EQ(await(joiner()), 7);
  });
}

/// Throws when it is moved, if `refuse` is set. Counts its moves.
struct fickle {
  explicit fickle(int number) : value(number) {}
  fickle(fickle&& from) : value(from.value), moves(from.moves + 1) {  // NOLINT(performance-noexcept-move-constructor)
    if (refuse) {
      throw std::runtime_error("not now");
    }
    from.value = -1;
  }
  fickle& operator=(fickle&& from) {  // NOLINT(performance-noexcept-move-constructor)
    value = std::exchange(from.value, -1);
    moves = from.moves + 1;
    return *this;
  }
  int value;
  int moves = 0;
  inline static bool refuse = false;
};

TEST(task, a_value_whose_move_throws_is_not_lost) {
  rig r(1);
  r.rt.run([] {
    for (const std::size_t room : {0U, 1U}) {
      channel<fickle> to(room);
      bool tried = false;
      const auto sends = [&]() -> task<> {
        fickle value(7);
        fickle::refuse = true;
        bool threw = false;
        try {
          static_cast<void>(co_await co::send(to, std::move(value), clock::now()));
        } catch (const std::runtime_error&) {
          threw = true;
        }
        fickle::refuse = false;
        tried = true;
        EXPECT_EQ(threw, room != 0);
        EXPECT_EQ(value.value, 7);  // NOLINT(bugprone-use-after-move): it was not moved
        EXPECT_TRUE((co_await co::send(to, std::move(value))).has_value());
        EXPECT_EQ(value.value, -1);  // NOLINT(bugprone-use-after-move)
        to.close();
        fickle late(8);
        EXPECT_EQ((co_await co::send(to, std::move(late))).error(), wait_error::closed);
        EXPECT_EQ(late.value, 8);  // NOLINT(bugprone-use-after-move)
      };
      pirn::fiber sender = pirn::spawn([&] { await(sends()); });
      const auto receives = [&]() -> task<> {
        fickle into(0);
        EXPECT_TRUE((co_await co::select(pirn::receive(to, into))).outcome.has_value());
        EXPECT_EQ(into.value, 7);
        EXPECT_EQ(into.moves, room == 0 ? 1 : 2);  // into the channel, if there is room, and out
        EXPECT_EQ((co_await co::select(pirn::receive(to, into))).outcome.error(), wait_error::closed);
      };
      while (!tried) {
        pirn::this_fiber::yield();
      }
      await(receives());
    }
  });
}

TEST(task, whose_send_or_receive_waits_learns_that_the_channel_is_closed) {
  rig r(1);
  r.rt.run([] {
    channel<std::unique_ptr<int>> values(0);
    const auto sends = [&]() -> task<> {
      auto value = std::make_unique<int>(7);
      const auto sent = co_await co::send(values, std::move(value));
      EXPECT_TRUE(!sent && sent.error() == wait_error::closed);
      EXPECT_NE(value, nullptr) << "it is untouched";
    };
    channel<int> numbers(1);
    const auto receives = [&]() -> task<> {
      const auto received = co_await co::receive(numbers);
      EXPECT_TRUE(!received && received.error() == wait_error::closed);
    };
    pirn::scope s;
    s.spawn([&] { await(sends()); });
    s.spawn([&] { await(receives()); });
    pirn::this_fiber::yield();
    values.close();
    numbers.close();
    s.join();
  });
}

TEST(task, a_stop_or_deadline_of_its_fiber_ends_its_waits) {
  rig r(2);
  r.rt.run([] {
    channel<int> never;
    const auto nested = [](channel<int>& from) -> task<wait_error> {
      const auto got = co_await co::receive(from);
      co_return got.error();
    };
    const auto waits = [&](int how) -> task<wait_error> {
      std::optional<int> into;
      switch (how) {
        case 0:
          co_return (co_await co::sleep_for(10s)).error();
        case 1:
          co_return co_await nested(never);
        case 2:
          co_return (co_await co::select(pirn::receive(never, into), pirn::until(clock::now() + 10s))).outcome.error();
        default: {
          pirn::fiber f = pirn::spawn([] { static_cast<void>(pirn::this_fiber::sleep_for(10s)); });
          const auto joined = co_await co::join(f);
          f.request_stop();
          co_await f;
          co_return joined.error();
        }
      }
    };
    for (int how = 0; how < 4; ++how) {
      for (const int worker : {0, 1}) {
        std::optional<wait_error> got;
        pirn::fiber f = pirn::spawn([&] { got = await(waits(how)); }, {.worker = worker});
        pirn::this_fiber::yield();
        f.request_stop();
        f.join();
        EXPECT_EQ(got, wait_error::stopped) << how;
      }
      EXPECT_EQ(await(waits(how), clock::now() + 1ms), wait_error::expired) << how;
    }
  });
}

TEST(task, selects) {
  rig r(1);
  r.rt.run([] {
    channel<int> numbers(1);
    channel<std::string> words(1);
    const auto gather = [&]() -> task<std::string> {
      std::string all;
      for (;;) {
        std::optional<int> number;
        std::optional<std::string> word;
        const auto [index, outcome] = co_await co::select(pirn::receive(numbers, number), pirn::receive(words, word),
                                                          pirn::until(clock::now() + 10s));
        if (!outcome) {
          EXPECT_EQ(outcome.error(), wait_error::closed);
          co_return all;
        }
        all += index == 0 ? std::to_string(*number) : *word;
      }
    };
    pirn::fiber giver = pirn::spawn([&] {
      for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE((i % 2 == 0 ? numbers.send(int{i}) : words.send(std::string("w"))).has_value());
        pirn::this_fiber::yield();
      }
      static_cast<void>(pirn::this_fiber::sleep_for(1ms));
      numbers.close();
    });
    EXPECT_EQ(await(gather()), "0w2w");
    giver.join();
  });
}

TEST(task, uses_what_is_local_to_its_worker) {
  on_one_worker([] {
    pirn::local::channel<int> numbers;
    pirn::local::channel<int> doubled;
    pirn::local::event bell;
    pirn::fiber f = pirn::spawn([&] {
      for (int i = 1; i <= 100; ++i) {
        EXPECT_TRUE(numbers.send(i).has_value());
        EXPECT_EQ(doubled.receive().value(), 2 * i);
      }
      bell.set();
    });
    using ints = pirn::local::channel<int>;
    const auto answers = [](ints& from, ints& to, pirn::local::event& end) -> task<int> {
      for (int count = 0;; ++count) {
        int number = 0;
        if ((co_await co::select(pirn::receive(from, number), pirn::wait(end))).index == 1) {
          co_return count;
        }
        EXPECT_TRUE((co_await co::send(to, 2 * number)).has_value());
      }
    };
    EXPECT_EQ(await(answers(numbers, doubled, bell)), 100);
    f.join();
  });
}

TEST(task, may_call_what_suspends_a_fiber) {
  rig r(2);
  r.rt.run([] {
    pirn::mutex m;
    m.lock();
    event go;
    const auto blocked = [&]() -> task<> {
      co_await co::yield();  // so that it continues in the fiber that resumes all tasks
      m.lock();
      m.unlock();
    };
    const auto unlocks = [&]() -> task<> {
      EXPECT_EQ(go.wait({.stoppable = false}), pirn::wake_reason::notified);
      co_await co::yield();
      m.unlock();
    };
    pirn::fiber a = pirn::spawn([&] { await(blocked()); });
    pirn::fiber b = pirn::spawn([&] { await(unlocks()); });
    static_cast<void>(pirn::this_fiber::sleep_for(1ms));
    go.signal();
    b.join();
    a.join();
  });
}

TEST(task, as_many_as_there_are_may_be_held_up) {
  rig r(1);
  r.rt.run([] {
    constexpr int parties = 100;
    pirn::latch all(parties);
    const auto meets = [&]() -> task<> {
      co_await co::yield();
      EXPECT_TRUE(all.arrive_and_wait(1, clock::now() + 10s));
    };
    pirn::scope s;
    for (int i = 0; i < parties; ++i) {
      s.spawn([&] { await(meets()); });
    }
    s.join();
  });
}

TEST(task, made_ready_by_a_thread_goes_on_where_the_worker_sleeps_and_is_held_up) {
  rig r(1, {.deadlock_delay = 1h});  // so that nothing else wakes it
  pirn::mutex m;
  channel<int> far;
  m.lock();
  const auto receives = [&]() -> task<> {
    EXPECT_EQ(co_await co::receive(far), 1);
    m.unlock();
  };
  const auto blocked = [&]() -> task<> {
    co_await co::yield();
    m.lock();
    m.unlock();
  };
  pirn::fiber c = r.rt.spawn([&] { await(receives()); });
  pirn::fiber d = r.rt.spawn([&] { await(blocked()); });
  std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(far.send(1).has_value());
  c.join();
  d.join();
}

/// An awaitable of another library: resumes on a separate thread, or at once.
struct elsewhere {
  bool at_once = false;
  bool throws = false;
  std::thread* thread;
  bool await_ready() const { return at_once; }
  void await_suspend(std::coroutine_handle<> h) const {
    *thread = std::thread([h] { h.resume(); });
  }
  int await_resume() const {
    if (throws) {
      throw std::runtime_error("elsewhere");
    }
    return 7;
  }
};

task<int> one() { co_return 1; }
task<int> nested(int depth) {
  if (depth == 0) {
    co_return 0;
  }
  co_return 1 + co_await nested(depth - 1);
}

// Also where the compiler turns the steps from one task to another into calls (gcc below -O2).
TEST(task, those_that_never_wait_take_no_stack) {
  rig r(1);
  constexpr int many = 20'000;
  const auto all = []() -> task<int> {
    int count = 0;
    for (int i = 0; i < many; ++i) {
      count += co_await one();
      if (i % 1000 == 0) {
        co_await co::yield();
      }
    }
    co_return count;
  };
  for (const bool migratable : {false, true}) {
    r.rt.spawn(
            [&] {
              EXPECT_EQ(await(all()), many);
              EXPECT_EQ(await(nested(many)), many);
            },
            {.migratable = migratable})
        .join();
  }
}

TEST(task, awaitables_of_others) {
  rig r(2);
  std::thread thread;
  EXPECT_EQ(await(elsewhere{.thread = &thread}), 7);
  thread.join();
  r.rt.run([&] {
    EXPECT_EQ(await(elsewhere{.thread = &thread}), 7);
    thread.join();
    EXPECT_EQ(await(elsewhere{.at_once = true, .thread = &thread}), 7);
    EXPECT_THROW(await(elsewhere{.throws = true, .thread = &thread}), std::runtime_error);
    thread.join();
    const auto comes_home = [&]() -> task<bool> {
      const auto before = std::this_thread::get_id();
      EXPECT_EQ(co_await (elsewhere{.thread = &thread}), 7);
      thread.join();
      EXPECT_EQ(co_await (elsewhere{.at_once = true, .thread = &thread}), 7);
      co_return before == std::this_thread::get_id();
    };
    EXPECT_TRUE(await(comes_home()));
  });
}

TEST(task, of_a_migratable_fiber_stays_where_it_began) {
  rig r(2);
  r.rt.spawn(
          [] {
            const auto stays = []() -> task<bool> {
              const auto before = std::this_thread::get_id();
              bool same = true;
              for (int i = 0; i < 50; ++i) {
                EXPECT_TRUE((co_await co::sleep_for(20us)).has_value());
                same = same && before == std::this_thread::get_id();
              }
              co_return same;
            };
            EXPECT_TRUE(await(stays()));
          },
          {.migratable = true})
      .join();
}

TEST(task, a_runtime_ends_after_its_tasks) {
  std::atomic<int> ended = 0;
  {
    rig r(2);
    for (int i = 0; i < 4; ++i) {
      r.rt.spawn([&] {
            const auto sleeps = [&]() -> task<> {
              EXPECT_TRUE((co_await co::sleep_for(1ms)).has_value());
              co_await co::yield();
              ++ended;
            };
            await(sleeps());
            await(sleeps());
          })
          .detach();
    }
  }
  EXPECT_EQ(ended, 8);
}

}  // namespace
