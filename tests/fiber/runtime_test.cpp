// Runtimes: their workers, where fibers run, beginnings and ends, and runtimes on the calling thread.
#include "pirn/fiber/runtime.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;

TEST(runtime, runs_what_it_is_given_and_returns_what_that_returns) {
  rig r(1);
  EXPECT_EQ(r.rt.run([] { return 5; }), 5);
  auto owned = r.rt.run([] { return std::make_unique<int>(6); });
  EXPECT_EQ(*owned, 6);
  bool ran = false;
  r.rt.run([&] { ran = true; });
  EXPECT_TRUE(ran);
  EXPECT_THROW(r.rt.run([] { throw std::runtime_error("x"); }), std::runtime_error);
  EXPECT_THROW(r.rt.run([]() -> int { throw 1; }), int);
}

TEST(runtime, has_as_many_workers_as_asked_for) {
  rig r(3);
  EXPECT_EQ(r.rt.statistics().workers, 3u);
  std::array<std::thread::id, 3> threads;
  for (int w = 0; w < 3; ++w) {
    for (int i = 0; i < 3; ++i) {
      r.rt.spawn(
              [&, w] {
                auto& expected = threads[static_cast<std::size_t>(w)];
                const auto here = std::this_thread::get_id();
                EXPECT_TRUE(expected == std::thread::id() || expected == here);
                expected = here;
                pirn::this_fiber::yield();
                static_cast<void>(pirn::this_fiber::sleep_for(50us));
                EXPECT_EQ(std::this_thread::get_id(), here);  // stays there
              },
              {.worker = w})
          .join();
    }
  }
  EXPECT_EQ((std::set<std::thread::id>{threads.begin(), threads.end()}.size()), 3u);
  EXPECT_EQ(pirn::runtime().statistics().workers, pirn::platform::available_cpus());
}

TEST(runtime, where_a_fiber_is_spawned) {
  rig r(2);
  std::array<std::thread::id, 2> threads;
  for (int w = 0; w < 2; ++w) {
    r.rt.spawn([&, w] { threads[static_cast<std::size_t>(w)] = std::this_thread::get_id(); }, {.worker = w}).join();
  }
  r.rt.spawn(
          [&] {
            for (int i = 0; i < 4; ++i) {  // on the spawner's worker
              pirn::spawn([&] { EXPECT_EQ(std::this_thread::get_id(), threads[1]); }).join();
            }
          },
          {.worker = 1})
      .join();
  std::set<std::thread::id> used;  // from a plain thread: each in turn
  for (int i = 0; i < 4; ++i) {
    r.rt.spawn([&] { used.insert(std::this_thread::get_id()); }).join();
  }
  EXPECT_EQ(used.size(), 2u);
}

TEST(runtime, counts_fibers) {
  rig r(2);
  event first;  // one for each: two signals of one event count once if no fiber waits yet
  event second;
  EXPECT_EQ(r.rt.statistics().spawned, 0u);
  {
    const pirn::fiber f = r.rt.spawn([&] { static_cast<void>(first.wait({.stoppable = false})); });
    const pirn::fiber g = r.rt.spawn([&] { static_cast<void>(second.wait({.stoppable = false})); }, {.worker = 1});
    EXPECT_EQ(r.rt.statistics().live_fibers, 2u);
    EXPECT_EQ(r.rt.statistics().spawned, 2u);
    first.signal();
    second.signal();
  }
  EXPECT_TRUE(eventually([&] { return r.rt.statistics().live_fibers == 0; }));
}

TEST(runtime, run_returns_references_too) {
  rig r(1);
  int value = 1;
  int& same = r.rt.run([&]() -> int& { return value; });
  EXPECT_EQ(&same, &value);
}

TEST(runtime, refuses_the_signal_that_dumps_are_made_with) {
  EXPECT_THROW(pirn::runtime({.workers = 1, .dump_signal = SIGURG}), std::system_error);
}

TEST(runtime, a_limited_pool_is_not_used_up_by_idle_stacks) {
  pirn::guarded_pool pool({.max_stacks = 16});
  {
    pirn::runtime rt({.workers = 2, .stacks = &pool});
    rt.run([] {
      // Fibers that are spawned here and end there leave their stacks idle with the other worker.
      for (int i = 0; i < 200; ++i) {
        auto made = pirn::try_spawn([] {}, {.worker = i % 2});
        ASSERT_TRUE(made) << i << ' ' << made.error().message();
        made->join();
      }
      for (int i = 0; i < 200; ++i) {
        auto made = pirn::try_spawn([] {}, {.worker = 1});
        ASSERT_TRUE(made) << i << ' ' << made.error().message();
        made->join();
      }
    });
  }
}

TEST(runtime, is_not_destroyed_under_its_fibers) {
  std::atomic<int> ended = 0;
  {
    event go;  // outlives the runtime
    rig r(2);
    r.rt.spawn([&] {
          static_cast<void>(pirn::this_fiber::sleep_for(20ms));
          pirn::spawn(
              [&] {
                static_cast<void>(pirn::this_fiber::sleep_for(5ms));
                go.signal();
                ++ended;
              },
              {.worker = 1})
              .detach();
          ++ended;
        })
        .detach();
    r.rt.spawn([&] {
          static_cast<void>(go.wait());
          ++ended;
        })
        .detach();
  }
  EXPECT_EQ(ended, 3);
}

TEST(runtime, waits_for_one_that_a_plain_thread_wakes) {
  std::atomic<bool> ended = false;
  event go;
  std::jthread waker([&] {
    std::this_thread::sleep_for(20ms);
    go.signal();
  });
  {
    rig r(2);
    r.rt.spawn([&] {
          static_cast<void>(go.wait());
          ended = true;
        })
        .detach();
  }
  EXPECT_TRUE(ended);
}

TEST(runtime, starts_again_and_again) {
  int runs = 0;
  for (int i = 0; i < scaled(60); ++i) {
    rig r(1 + static_cast<unsigned>(i % 3));
    if (i % 2 == 0) {
      runs += r.rt.run([] { return 1; });
    } else {
      r.rt.spawn([&] { ++runs; }).detach();
    }
    if (i % 5 == 0) {
      pirn::runtime unused({.workers = 2});
    }
  }
  EXPECT_EQ(runs, scaled(60));
}

TEST(runtime, several_at_once_wake_and_join_each_other) {
  constexpr std::size_t count = 6;
  std::vector<std::unique_ptr<rig>> rigs;
  for (std::size_t i = 0; i < count; ++i) {
    rigs.push_back(std::make_unique<rig>(2));
  }
  std::vector<event> ring(count);
  std::vector<pirn::fiber> all;
  const int rounds = scaled(500);
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(rigs[i]->rt.spawn([&, i] {
      for (int k = 0; k < rounds; ++k) {
        static_cast<void>(ring[i].wait());
        ring[(i + 1) % count].signal();
        if (k % 50 == 0) {  // a fiber of one runtime spawns into and joins from another
          int value = 0;
          rigs[(i + 1) % count]->rt.spawn([&] { value = k; }).join();
          EXPECT_EQ(value, k);
          EXPECT_EQ(rigs[(i + 2) % count]->rt.run([&] { return k; }), k);
        }
      }
    }));
  }
  ring[0].signal();
  join_all(all);
}

TEST(runtime, says_why_it_cannot_start) {
  EXPECT_THROW(pirn::runtime({.workers = 2,
                              .make_engine = []() -> std::unique_ptr<pirn::engine> {
                                throw std::system_error(std::make_error_code(std::errc::too_many_files_open));
                              }}),
               std::system_error);
  int made = 0;
  try {  // only the second worker's engine fails
    const pirn::runtime unborn({.workers = 2, .make_engine = [&] {
                                  if (++made == 2) {
                                    throw std::system_error(std::make_error_code(std::errc::too_many_files_open));
                                  }
                                  return pirn::make_epoll_engine();
                                }});
    ADD_FAILURE();
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), std::errc::too_many_files_open);
  }
}

#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)  // sanitizers reserve more address space than any limit
/// Ends the process with 0 if a runtime starts or reports that it cannot, however little address space is left for it.
[[noreturn]] void start_with_less_and_less_memory() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t used = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
  for (rlim_t more = rlim_t{24} << 20; more > 0; more -= 32 << 10) {
    const rlimit limit{used + more, RLIM_INFINITY};
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      pirn::runtime({.workers = 2}).run([] {});
    } catch (const std::exception&) {
    }
  }
  _exit(0);
}

TEST(runtime_death, starts_or_throws_whatever_memory_is_left) {
  EXPECT_EXIT(start_with_less_and_less_memory(), testing::ExitedWithCode(0), "");
}
#endif

TEST(runtime, pins_workers_to_the_cpus_that_it_may_use) {
  const unsigned cpus = pirn::platform::available_cpus();
  try {
    const pirn::runtime rt({.workers = cpus + 1, .pin_workers = true});
    ADD_FAILURE();
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), std::errc::invalid_argument);
    EXPECT_NE(std::string(e.what()).find("more workers to be pinned than CPUs"), std::string::npos) << e.what();
  }
  pirn::runtime rt({.pin_workers = true});
  ASSERT_EQ(rt.statistics().workers, cpus);
  for (unsigned i = 0; i < cpus; ++i) {
    const auto cpu = static_cast<int>(pirn::platform::available_cpu(i).value());
    rt.spawn(
          [cpu] {
            for (int round = 0; round < 20; ++round) {
              EXPECT_EQ(sched_getcpu(), cpu);
              static_cast<void>(pirn::this_fiber::sleep_for(50us));
            }
          },
          {.worker = static_cast<int>(i)})
        .join();
  }
}

// As under taskset and in a container.
TEST(runtime, has_as_many_workers_as_cpus_that_it_may_use_and_no_others) {
  const unsigned cpus = pirn::platform::available_cpus();
  const unsigned last = pirn::platform::available_cpu(cpus - 1).value();
  std::thread([last] {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(last, &only);
    ASSERT_EQ(sched_setaffinity(0, sizeof only, &only), 0);
    pirn::runtime rt({.pin_workers = true});
    EXPECT_EQ(rt.statistics().workers, 1U);
    EXPECT_EQ(rt.run([] { return sched_getcpu(); }), static_cast<int>(last));
    EXPECT_EQ(pirn::runtime().statistics().workers, 1U);
  }).join();
}

TEST(runtime, gives_fibers_the_stack_that_was_asked_for) {
  rig r(1, {.stack_size = 200'000});
  const auto use = [](std::size_t bytes) {
    volatile char* const area = static_cast<volatile char*>(__builtin_alloca(bytes));
    for (std::size_t i = 0; i < bytes; i += 512) {
      area[i] = 1;
    }
    pirn::this_fiber::yield();
  };
  r.rt.run([&] { use(180'000); });
  r.rt.spawn([&] { use(1'000'000); }, {.stack_size = 1'100'000}).join();
  r.rt.run([&] {
    pirn::spawn([&] { use(1'000'000); }, {.stack_size = 1'100'000}).join();
    pirn::spawn([&] { use(180'000); }).join();
  });
}

TEST(runtime, default_pool_and_options) {
  pirn::runtime rt;
  std::atomic<int> ended = 0;
  std::vector<pirn::fiber> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(rt.spawn([&] { ++ended; }));
  }
  join_all(all);
  EXPECT_EQ(ended, 100);
}

// ---- on the calling thread ----------------------------------------------------------------------------------------

struct here_rig : rig {
  explicit here_rig(unsigned workers = 1) : rig(workers, {.calling_thread = true}) {}
};

TEST(runtime_here, runs_its_fibers_while_that_thread_polls) {
  here_rig r;
  const auto advances_while = [&](const auto& poll) {
    bool done = false;
    pirn::fiber sleeper = r.rt.spawn([&] {
      EXPECT_TRUE(pirn::this_fiber::sleep_for(1ms).has_value());
      pirn::spawn([&] { done = true; }, {.worker = pirn::spawn_options::any_worker}).join();
    });
    for (const auto limit = std::chrono::steady_clock::now() + 10s;
         !done && std::chrono::steady_clock::now() < limit;) {
      poll();
    }
    EXPECT_TRUE(done);
    sleeper.join();
  };
  advances_while([] { pirn::this_fiber::yield(); });
  advances_while([] { EXPECT_TRUE(pirn::this_fiber::sleep_for(0s).has_value()); });
  pirn::wait_queue never;
  advances_while([&] {
    never.lock();
    EXPECT_EQ(never.wait({.deadline = pirn::time_limit(), .what = "nothing"}), pirn::wake_reason::timed_out);
  });
}

TEST(runtime_here, runs_its_fibers_on_the_thread_that_made_it) {
  const auto here = std::this_thread::get_id();
  bool ended = false;
  {
    here_rig r;
    EXPECT_EQ(r.rt.run([] { return std::this_thread::get_id(); }), here);
    EXPECT_THROW(r.rt.run([] { throw std::runtime_error("x"); }), std::runtime_error);
    bool ran = false;
    pirn::fiber f = r.rt.spawn([&] {
      for (int i = 0; i < 5000; ++i) {
        pirn::this_fiber::yield();
      }
      ran = std::this_thread::get_id() == here;
    });
    EXPECT_FALSE(ran);  // not before this thread waits
    f.join();
    EXPECT_TRUE(ran);
    r.rt.spawn([&] {
          static_cast<void>(pirn::this_fiber::sleep_for(2ms));
          ended = std::this_thread::get_id() == here;
        })
        .detach();
  }
  EXPECT_TRUE(ended);
}

TEST(runtime_here, goes_on_in_every_wait_of_its_thread_and_no_longer) {
  here_rig r;
  int turns = 0;
  event stop;
  const pirn::fiber counter = r.rt.spawn([&] {
    while (stop.wait({.deadline = clock::now() + 100us}) != pirn::wake_reason::notified) {
      ++turns;
    }
  });
  EXPECT_TRUE(pirn::this_fiber::sleep_for(20ms).has_value());
  EXPECT_GT(turns, 0);
  const int before = turns;
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(turns, before);
  event never;
  EXPECT_EQ(never.wait({.deadline = clock::now() + 1ms}), pirn::wake_reason::timed_out);
  stop.signal();
}

TEST(runtime_here, its_thread_is_woken_by_others) {
  here_rig r(2);
  EXPECT_NE(r.rt.spawn([] { return; }, {.worker = 1}).number(), 0u);
  for (int i = 0; i < scaled(200); ++i) {
    event done;
    std::thread other([&] { done.signal(); });
    EXPECT_EQ(done.wait(), pirn::wake_reason::notified);  // most often asleep in the engine
    other.join();
    std::thread::id there;
    r.rt.spawn([&] { there = std::this_thread::get_id(); }, {.worker = 1}).join();
    EXPECT_NE(there, std::this_thread::get_id());
  }
}

TEST(runtime_here, keeps_the_exceptions_of_its_thread_apart) {
  here_rig r;
  const auto uncaught = r.rt.run([] { return std::uncaught_exceptions(); });
  struct guard {
    here_rig& r;
    int& seen;
    ~guard() {
      seen = r.rt.run([] { return std::uncaught_exceptions(); });
    }
  };
  int seen = -1;
  try {
    const guard g{r, seen};
    throw 1;
  } catch (int) {
    EXPECT_EQ(r.rt.run([] { return std::current_exception() == nullptr; }), true);
    EXPECT_NE(std::current_exception(), nullptr);
  }
  EXPECT_EQ(uncaught, 0);
  EXPECT_EQ(seen, 0);
}

TEST(runtime_here, is_dumped_while_it_stands_still) {
  here_rig r;
  event go;
  const pirn::fiber f = r.rt.spawn([] {});
  pirn::fiber waits;
  r.rt.run([&] {
    waits =
        pirn::spawn([&] { static_cast<void>(go.wait({.stoppable = false, .what = "the word"})); }, {.name = "patient"});
    pirn::this_fiber::yield();
  });
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<bool> dumped = false;
  std::thread other([&] {
    r.rt.dump(ends[1]);
    dumped = true;
  });
  while (!dumped) {
    std::this_thread::yield();
  }
  other.join();
  char text[8192];
  const ssize_t length = read(ends[0], text, sizeof text);
  close(ends[0]);
  close(ends[1]);
  const std::string all(text, length > 0 ? static_cast<std::size_t>(length) : 0);
  EXPECT_NE(all.find("\"patient\": waiting for the word"), std::string::npos) << all;
  EXPECT_NE(all.find("runs no fiber"), std::string::npos) << all;
  go.signal();
  waits.join();
}

TEST(runtime_here, is_refused_where_it_cannot_be) {
  const auto code_of_another = [] {
    try {
      const pirn::runtime unborn({.workers = 1, .calling_thread = true});
    } catch (const std::system_error& e) {
      return e.code();
    }
    return std::error_code();
  };
  here_rig r;
  EXPECT_EQ(code_of_another(), std::errc::device_or_resource_busy);
  EXPECT_EQ(r.rt.run(code_of_another), std::errc::operation_not_permitted);
  EXPECT_EQ(r.rt.run([] { return 1; }), 1);
}

TEST(runtime_here_death, is_destroyed_by_its_own_thread_only) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto rt = std::make_unique<pirn::runtime>(pirn::runtime_options{.workers = 1, .calling_thread = true});
        std::thread([&] { rt.reset(); }).join();
      },
      "pirn: a runtime on the calling thread is being destroyed by another thread");
}

}  // namespace
