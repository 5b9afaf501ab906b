// Handles of fibers: joins, stops, detached fibers, spawning that fails, and callables of all kinds.
#include "pirn/fiber/fiber.hpp"

#include <array>
#include <memory>
#include <set>
#include <stdexcept>
#include <type_traits>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::wait_error;

TEST(fiber, join_waits_for_the_end) {
  rig r;
  int value = 0;
  pirn::fiber f = r.rt.spawn([&] {
    for (int i = 0; i < 10; ++i) {
      pirn::this_fiber::yield();
      ++value;
    }
  });
  EXPECT_TRUE(f.joinable());
  f.join();
  EXPECT_FALSE(f.joinable());
  EXPECT_EQ(value, 10);
}

TEST(fiber, joins_itself_when_destroyed_and_requests_a_stop) {
  rig r;
  bool stopped = false;
  {
    const pirn::fiber f = r.rt.spawn([&] { stopped = !pirn::this_fiber::sleep_until(pirn::platform::never); });
  }
  EXPECT_TRUE(stopped);
}

TEST(fiber, assignment_joins_the_former_one) {
  rig r;
  bool first_ended = false;
  pirn::fiber f = r.rt.spawn([&] {
    static_cast<void>(pirn::this_fiber::sleep_until(pirn::platform::never));
    first_ended = true;
  });
  f = r.rt.spawn([] {});
  EXPECT_TRUE(first_ended);
  pirn::fiber& same = f;
  f = std::move(same);
  EXPECT_TRUE(f.joinable());
  f.join();
}

TEST(fiber, is_joined_after_it_has_ended) {
  rig r;
  std::atomic<bool> ended = false;
  pirn::fiber f = r.rt.spawn([&] { ended = true; });
  ASSERT_TRUE(eventually([&] { return ended && r.rt.statistics().live_fibers == 0; }));
  f.join();
}

TEST(fiber, of_a_calling_thread_is_joined_from_elsewhere_while_that_does_something_else) {
  pirn::runtime rt({.workers = 1, .calling_thread = true});
  pirn::fiber f = rt.spawn([] {});
  rt.run([] { pirn::this_fiber::yield(); });
  ASSERT_EQ(rt.statistics().live_fibers, 0u);
  bool joined = false;
  std::thread([&] { joined = f.join(clock::now() + 20s).has_value(); }).join();
  EXPECT_TRUE(joined);
}

TEST(fiber, is_joined_from_elsewhere_long_after_it_has_ended) {
  rig r(2, {.idle_spin = 0ms, .deadlock_delay = 0ms});
  for (const int joined_by : {-1, 1}) {
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 100; ++i) {
      all.push_back(r.rt.spawn([] {}, {.worker = 0}));
    }
    ASSERT_TRUE(eventually([&] { return r.rt.statistics().live_fibers == 0; }));
    std::this_thread::sleep_for(5ms);  // its worker sleeps, or will soon
    const auto join_all = [&] {
      for (pirn::fiber& each : all) {
        ASSERT_TRUE(each.join(clock::now() + 20s).has_value());
      }
    };
    if (joined_by < 0) {
      join_all();
    } else {
      r.rt.spawn(join_all, {.worker = joined_by}).join();
    }
  }
}

TEST(fiber, gives_its_stack_back_unjoined_also_where_the_pool_has_a_limit) {
#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
  pirn::guarded_pool pool({.max_stacks = 8});
  pirn::runtime rt({.workers = 1, .stacks = &pool});
  rt.run([&] {
    std::vector<pirn::fiber> all;
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 7; ++i) {
        auto made = pirn::try_spawn([] { pirn::this_fiber::yield(); });
        ASSERT_TRUE(made.has_value()) << made.error().message();
        all.push_back(std::move(*made));
      }
      ASSERT_TRUE(eventually([&] { return rt.statistics().live_fibers == 1; }));
      static_cast<void>(pirn::this_fiber::sleep_for(5ms));
    }
  });
#else
  GTEST_SKIP() << "a sanitizer keeps the stack with the handle";
#endif
}

TEST(fiber, detached_after_its_failure_tells_of_it_at_once) {
  static std::atomic<int> told = 0;
  const auto before = pirn::set_unhandled_exception_handler(
      // NOLINTNEXTLINE(performance-unnecessary-value-param): the handler's signature
      [](std::uint64_t, std::string_view, std::exception_ptr) noexcept { ++told; });
  rig r(1);
  r.rt.run([] {
    pirn::fiber failed = pirn::spawn([] { throw 1; });
    pirn::this_fiber::yield();
    EXPECT_EQ(told, 0);
    failed.detach();
    EXPECT_EQ(told, 1);
  });
  EXPECT_EQ(told, 1);
  pirn::set_unhandled_exception_handler(before);
}

TEST(fiber, detached_runs_on) {
  rig r;
  std::atomic<int> ended = 0;
  r.rt.spawn([&] {
        pirn::this_fiber::yield();
        ++ended;
      })
      .detach();
  pirn::fiber f = r.rt.spawn([&] { ++ended; });
  ASSERT_TRUE(eventually([&] { return ended == 2; }));
  f.detach();  // after its end: this frees it
  EXPECT_FALSE(f.joinable());
  f.detach();
}

TEST(fiber, join_rethrows) {
  rig r;
  EXPECT_THROW(r.rt.spawn([] { throw std::runtime_error("a"); }).join(), std::runtime_error);
  EXPECT_THROW(r.rt.spawn([] { throw 7; }).join(), int);
  r.rt.run([&] {
    pirn::fiber f = pirn::spawn([] { throw std::string("from another worker"); }, {.worker = 1});
    try {
      f.join();
      ADD_FAILURE();
    } catch (const std::string& s) {
      EXPECT_EQ(s, "from another worker");
    }
    EXPECT_FALSE(f.joinable());
    EXPECT_EQ(std::current_exception(), nullptr);
  });
}

struct unhandled_record {
  std::uint64_t id = 0;
  std::string name;
  std::string what;
  std::atomic<int> count = 0;
} unhandled;

void record_unhandled(std::uint64_t id, std::string_view name, std::exception_ptr what) noexcept {
  unhandled.id = id;
  unhandled.name = name;
  try {
    std::rethrow_exception(std::move(what));
  } catch (const std::exception& e) {
    unhandled.what = e.what();
  } catch (...) {
    unhandled.what = "unknown";
  }
  ++unhandled.count;
}

TEST(fiber, an_exception_that_nobody_takes_goes_to_the_handler) {
  const auto before = pirn::set_unhandled_exception_handler(&record_unhandled);
  rig r;
  unhandled.count = 0;
  r.rt.spawn([] { throw std::runtime_error("lost"); }, {.name = "thrower"}).detach();
  ASSERT_TRUE(eventually([] { return unhandled.count == 1; }));
  EXPECT_EQ(unhandled.name, "thrower");
  EXPECT_EQ(unhandled.what, "lost");
  EXPECT_NE(unhandled.id, 0u);
  {
    const pirn::fiber f = r.rt.spawn([] { throw 1; }, {.name = "dropped"});
  }
  EXPECT_EQ(unhandled.count, 2);
  EXPECT_EQ(unhandled.name, "dropped");
  EXPECT_EQ(unhandled.what, "unknown");
  EXPECT_EQ(pirn::set_unhandled_exception_handler(before), &record_unhandled);
}

TEST(fiber, try_spawn_says_why_there_is_no_stack) {
  pirn::guarded_pool pool({.max_stacks = 2});
  pirn::runtime rt({.workers = 1, .stacks = &pool});
  rt.run([&] {
    event go;
    auto second = pirn::try_spawn([&] { static_cast<void>(go.wait()); });
    ASSERT_TRUE(second.has_value());
    const auto third = pirn::try_spawn([] {});
    ASSERT_FALSE(third.has_value());
    EXPECT_STREQ(third.error().category().name(), "pirn.stack");
    try {
      pirn::spawn([] {}).join();
      ADD_FAILURE();
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code(), third.error());
    }
    go.signal();
    second->join();
    auto fourth = pirn::try_spawn([] {});  // the running fibers have ended, and there is room again
    ASSERT_TRUE(fourth.has_value());
    fourth->join();
  });
}

TEST(fiber, try_spawn_refuses_workers_and_sizes_that_do_not_exist) {
  rig r(2);
  for (const int worker : {2, 1000, -3}) {
    const auto none = r.rt.try_spawn([] {}, {.worker = worker});
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error(), std::errc::invalid_argument);
  }
  const auto small = r.rt.try_spawn([] {}, {.stack_size = 1024});
  ASSERT_FALSE(small.has_value());
  EXPECT_STREQ(small.error().category().name(), "pirn.stack");
  EXPECT_EQ(r.pool.statistics().in_use, 0u);
  EXPECT_FALSE(r.rt.try_spawn([] {}, {.stack_size = SIZE_MAX}).has_value());
}

TEST(fiber, a_callable_may_be_larger_than_a_stack_and_aligned_to_more_than_a_cache_line) {
  struct alignas(256) odd {
    std::array<char, 100'000> bytes{};
    std::uintptr_t* at;
    void operator()() const {
      *at = reinterpret_cast<std::uintptr_t>(this) % 256 + static_cast<unsigned char>(bytes.back());
    }
  };
  rig r(1);
  std::uintptr_t at = 1;
  odd body;
  body.bytes.back() = 0;
  body.at = &at;
  r.rt.spawn(body, {.stack_size = 16'384}).join();
  EXPECT_EQ(at, 0u);
  at = 1;
  r.rt.run([&] { pirn::spawn(body).join(); });
  EXPECT_EQ(at, 0u);
}

TEST(fiber, a_batch_that_never_suspends_passes_through_few_stacks) {
  rig r(1);
  r.rt.run([] {
    constexpr int count = 1000;
    std::set<std::uintptr_t> stacks;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(
          pirn::spawn([&stacks] { stacks.insert(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))); }));
    }
    for (auto& each : all) {
      each.join();
    }
    EXPECT_GE(stacks.size(), 1u);
    if (std::is_empty_v<pirn::sanitizer_state>) {
      EXPECT_LE(stacks.size(), 3u);
    }
  });
}

TEST(fiber, more_may_wait_for_their_start_than_a_worker_caches_stacks) {
  rig r(1);
  r.rt.run([] {
    constexpr int count = 3000;
    int ran = 0;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(pirn::spawn([&ran] {
        pirn::this_fiber::yield();
        ++ran;
      }));
    }
    for (auto& each : all) {
      each.join();
    }
    EXPECT_EQ(ran, count);
  });
}

TEST(fiber, a_callable_that_cannot_be_moved_in_leaves_nothing_behind) {
  struct thrower {
    thrower() = default;
    thrower(const thrower&) { throw 7; }
    void operator()() const {}
  };
  rig r(1);
  r.rt.run([] {
    const thrower body;
    for (int i = 0; i < 3000; ++i) {  // more than the stacks or blocks at hand, if each failure kept one
      EXPECT_THROW(static_cast<void>(pirn::spawn(body)), int);
    }
    pirn::spawn([] {}).join();
  });
  EXPECT_EQ(r.pool.statistics().in_use, 0u);
}

TEST(fiber, spawn_outside_a_runtime_is_misuse) {
  EXPECT_THROW(static_cast<void>(pirn::spawn([] {})), std::system_error);
}

TEST(fiber, names_and_numbers) {
  rig r;
  std::string inside;
  std::uint64_t number = 0;
  const auto look = [&] {
    inside = pirn::this_fiber::name();
    number = pirn::this_fiber::number();
  };
  const std::string long_name(100, 'x');
  pirn::fiber f = r.rt.spawn(look, {.name = long_name});
  EXPECT_EQ(f.name(), long_name.substr(0, 31));
  const std::uint64_t id = f.number();
  EXPECT_NE(id, 0u);
  f.join();
  EXPECT_EQ(inside, long_name.substr(0, 31));
  EXPECT_EQ(number, id);
  EXPECT_EQ(f.number(), 0u);
  EXPECT_EQ(f.name(), "");
  r.rt.spawn(look).join();
  EXPECT_EQ(inside, "");

  std::set<std::uint64_t> seen;
  for (int i = 0; i < 3000; ++i) {
    pirn::fiber g = r.rt.spawn([] {}, {.worker = pirn::spawn_options::any_worker});
    EXPECT_TRUE(seen.insert(g.number()).second);
    g.join();
  }
  r.rt.run([&] {
    for (int i = 0; i < 3000; ++i) {
      pirn::fiber g = pirn::spawn([] {});
      EXPECT_TRUE(seen.insert(g.number()).second);
      g.join();
    }
  });
}

TEST(fiber, join_with_a_deadline) {
  rig r;
  event go;
  pirn::fiber f = r.rt.spawn([&] { static_cast<void>(go.wait()); });
  const auto from_a_fiber = [&] {
    const auto result = f.join(clock::now() + 3ms);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error(), wait_error::timed_out);
    EXPECT_TRUE(f.joinable());
  };
  from_a_fiber();  // on this thread
  r.rt.run(from_a_fiber);
  r.rt.spawn(from_a_fiber, {.worker = 1}).join();
  go.signal();
  EXPECT_TRUE(f.join(clock::now() + 20s).has_value());
  EXPECT_FALSE(f.joinable());
  f = r.rt.spawn([] { throw 5; });
  EXPECT_THROW(static_cast<void>(f.join(pirn::platform::never)), int);
}

TEST(fiber, a_stop_ends_a_join_with_deadline_only) {
  rig r;
  event go;
  pirn::fiber waited_for = r.rt.spawn([&] { static_cast<void>(go.wait()); });
  std::atomic<bool> stopped = false;
  pirn::fiber joiner = r.rt.spawn([&] {
    const auto result = waited_for.join(pirn::platform::never);
    EXPECT_FALSE(result);
    EXPECT_EQ(result.error(), wait_error::stopped);
    EXPECT_EQ(waited_for.join(pirn::platform::never).error(), wait_error::stopped);  // again, and at once
    stopped = true;
    waited_for.join();
  });
  std::this_thread::sleep_for(2ms);
  joiner.request_stop();
  ASSERT_TRUE(eventually([&] { return stopped.load(); }));
  std::this_thread::sleep_for(2ms);
  EXPECT_TRUE(waited_for.joinable());
  go.signal();
  joiner.join();
  EXPECT_FALSE(waited_for.joinable());
}

TEST(fiber, joins_that_make_no_sense_throw) {
  rig r;
  pirn::fiber none;
  EXPECT_THROW(none.join(), std::system_error);
  EXPECT_THROW(static_cast<void>(none.join(pirn::platform::never)), std::system_error);
  r.rt.run([] {
    pirn::fiber self;
    bool caught = false;
    event handle_is_there;
    self = pirn::spawn([&] {
      static_cast<void>(handle_is_there.wait());
      try {
        self.join();
      } catch (const std::system_error& e) {
        caught = e.code() == std::errc::resource_deadlock_would_occur;
      }
    });
    handle_is_there.signal();
    pirn::this_fiber::yield();
    self.join();
    EXPECT_TRUE(caught);
  });
}

TEST(fiber, stops_by_handle_and_by_token) {
  rig r;
  const auto until_stopped = [] {
    EXPECT_EQ(pirn::this_fiber::sleep_until(pirn::platform::never).error(), wait_error::stopped);
    EXPECT_TRUE(pirn::this_fiber::stop_requested());
    EXPECT_EQ(pirn::this_fiber::sleep_for(1h).error(), wait_error::stopped);
  };
  pirn::fiber f = r.rt.spawn(until_stopped);
  f.request_stop();
  f.request_stop();
  f.join();
  f.request_stop();  // of no fiber

  pirn::stop_source source;
  std::vector<pirn::fiber> many;
  for (int i = 0; i < 20; ++i) {
    many.push_back(r.rt.spawn(until_stopped, {.worker = i % 2, .stop = source.get_token()}));
  }
  pirn::fiber ends_early = r.rt.spawn([] {}, {.stop = source.get_token()});
  ends_early.join();
  std::this_thread::sleep_for(1ms);
  source.request_stop();
  for (pirn::fiber& each : many) {
    each.join();
  }
  r.rt.spawn(until_stopped, {.stop = source.get_token()}).join();  // stopped before it began
}

struct alignas(256) over_aligned {
  std::uintptr_t* address;
  std::array<char, 300> content;
  void operator()() const { *address = reinterpret_cast<std::uintptr_t>(this); }
};

TEST(fiber, callables_of_any_kind) {
  rig r;
  std::uintptr_t address = 1;
  for (int i = 0; i < 40; ++i) {  // stacks begin at varying addresses
    pirn::fiber a = r.rt.spawn(over_aligned{&address, {}});
    a.join();
    EXPECT_EQ(address % 256, 0u);
  }
  std::array<unsigned char, 16'384> large;
  large.fill(0xa5);
  int sum = 0;
  r.rt.spawn([large, &sum] {
        for (const unsigned char c : large) {
          sum += c;
        }
      })
      .join();
  EXPECT_EQ(sum, 16'384 * 0xa5);

  auto owned = std::make_unique<int>(4);
  int seen = 0;
  r.rt.spawn([owned = std::move(owned), &seen] { seen = *owned; }).join();
  EXPECT_EQ(seen, 4);

  static int plain_calls;
  plain_calls = 0;
  void (*const plain)() = [] { ++plain_calls; };
  r.rt.spawn(plain).join();
  EXPECT_EQ(plain_calls, 1);
  struct rvalue_only {
    int* calls;
    void operator()() && { ++*calls; }
  };
  r.rt.spawn(rvalue_only{&seen}).join();
  EXPECT_EQ(seen, 5);
}

TEST(fiber, locals_are_aligned) {
  rig r;
  for (int i = 0; i < 40; ++i) {
    r.rt.spawn([] {
          alignas(64) char vector[64];
          alignas(16) char pair[16];
          asm volatile("" : : "r"(&vector[0]), "r"(&pair[0]) : "memory");
          pirn::this_fiber::yield();
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&vector[0]) % 64, 0u);
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&pair[0]) % 16, 0u);
          char text[64];
          EXPECT_EQ(std::snprintf(text, sizeof text, "%.3f", 1.5), 5);  // saves vector registers by aligned stores
        })
        .join();
  }
}

/// Notes what happens to a callable, in order.
struct recorded {
  std::vector<std::string>* log = nullptr;
  explicit recorded(std::vector<std::string>& l) : log(&l) {}
  recorded(recorded&& other) noexcept : log(std::exchange(other.log, nullptr)) {}
  ~recorded() {
    if (log != nullptr) {
      log->push_back("destroyed on " + std::string(pirn::this_fiber::name()));
      pirn::this_fiber::yield();
    }
  }
  void operator()() const {
    struct local {
      std::vector<std::string>* log;
      ~local() { log->push_back("local"); }
    } l{log};
    log->push_back("body");
  }
};

TEST(fiber, the_callable_is_destroyed_on_the_fiber_before_join_returns) {
  rig r;
  std::vector<std::string> log;
  r.rt.spawn(recorded(log), {.name = "f"}).join();
  log.push_back("joined");
  EXPECT_EQ(log, (std::vector<std::string>{"body", "local", "destroyed on f", "joined"}));
}

TEST(fiber, thousands_that_do_not_suspend_touch_few_stacks) {
  rig r(1);
  constexpr std::size_t count = 20'000;
  std::size_t ended = 0;
  r.rt.run([&] {
    for (int round = 0; round < 2; ++round) {
      std::vector<pirn::fiber> all;
      for (std::size_t i = 0; i < count; ++i) {
        all.push_back(pirn::spawn([&] { ++ended; }));
      }
      join_all(all);
    }
  });
  EXPECT_EQ(ended, 2 * count);
#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
  EXPECT_LT(r.pool.statistics(pirn::stack_sampling::memory).resident, count * 4096 / 20);
#endif
}

TEST(fiber, thousands_at_once) {
  rig r;
  const int count = scaled(20'000);
  std::atomic<int> ended = 0;
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(pirn::spawn(
          [&] {
            pirn::this_fiber::yield();
            ++ended;
          },
          {.worker = i % 3 == 0 ? pirn::spawn_options::any_worker : pirn::spawn_options::current_worker}));
    }
    join_all(all);
  });
  EXPECT_EQ(ended, count);
  EXPECT_EQ(r.rt.statistics().spawned, static_cast<std::uint64_t>(count) + 1);
}

}  // namespace
