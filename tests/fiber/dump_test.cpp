// Dumps of a runtime: what they show of each fiber, and that they may come at any moment, also by a signal.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "pirn/fiber/co.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/fiber/runtime.hpp"

namespace {

using namespace std::chrono_literals;

#if defined(PIRN_TSAN)
// ThreadSanitizer holds a signal back until the thread calls one of the functions that it intercepts.
constexpr bool signals_strike_anywhere = false;
#else
constexpr bool signals_strike_anywhere = true;
#endif

std::atomic<bool> released{false};
std::atomic<int> arrived{0};

}  // namespace

// Names that a test looks for in a backtrace; the asm keeps the calls from being the last thing in them.
extern "C" {
[[gnu::noinline]] void dump_test_spins() {
  arrived.fetch_add(1);
  while (!released.load(std::memory_order_relaxed)) {
  }
  asm volatile("");
}
[[gnu::noinline]] void dump_test_sleeps() {
  arrived.fetch_add(1);
  static_cast<void>(pirn::this_fiber::sleep_for(1h));
  asm volatile("");
}
[[gnu::noinline]] void dump_test_waits(pirn::wait_queue* queue, const void* object) {
  arrived.fetch_add(1);
  queue->lock();
  static_cast<void>(queue->wait({.what = "a letter", .object = object}));
  asm volatile("");
}
[[gnu::noinline]] void dump_test_yields() {
  arrived.fetch_add(1);
  while (!released.load(std::memory_order_relaxed)) {
    pirn::this_fiber::yield();
  }
  asm volatile("");
}
}
pirn::task<> dump_test_task() { static_cast<void>(co_await pirn::co::sleep_for(1h)); }

namespace {

/// A file that dumps are written to and read from.
class sink {
 public:
  sink() : file_(std::tmpfile()) {}
  ~sink() { std::fclose(file_); }
  sink(const sink&) = delete;
  sink& operator=(const sink&) = delete;
  [[nodiscard]] int descriptor() const { return fileno(file_); }
  /// Returns all that was written.
  [[nodiscard]] std::string text() const {
    std::string result;
    char buffer[4096];
    off_t at = 0;
    for (ssize_t got = 0; (got = pread(descriptor(), buffer, sizeof buffer, at)) > 0; at += got) {
      result.append(buffer, static_cast<std::size_t>(got));
    }
    return result;
  }

 private:
  std::FILE* file_;
};

std::string dump_of(pirn::runtime& runtime) {
  const sink into;
  runtime.dump(into.descriptor());
  return into.text();
}

/// Redirects standard error while it exists.
class captured_stderr {
 public:
  captured_stderr() : original_(dup(2)) { dup2(into_.descriptor(), 2); }
  ~captured_stderr() {
    dup2(original_, 2);
    close(original_);
  }
  captured_stderr(const captured_stderr&) = delete;
  captured_stderr& operator=(const captured_stderr&) = delete;
  [[nodiscard]] std::string text() const { return into_.text(); }

 private:
  sink into_;
  int original_;
};

/// Returns the part of a dump about the fiber of that name: its line and its backtrace.
std::string part_of(const std::string& dump, const std::string& name) {
  const std::size_t found = dump.find("\"" + name + "\"");
  if (found == std::string::npos) {
    return "";
  }
  const std::size_t begin = dump.rfind('\n', found) + 1;
  std::size_t end = dump.find('\n', found);
  while (end != std::string::npos && dump.compare(end + 1, 4, "    ") == 0) {
    end = dump.find('\n', end + 1);
  }
  return dump.substr(begin, end - begin);
}

bool contains(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) {
    ++count;
  }
  return count;
}

std::string hex(const void* address) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "0x%lx", reinterpret_cast<unsigned long>(address));
  return buffer;
}

/// Waits until `count` fibers have arrived where they stay, and a little longer.
void wait_for_arrivals(int count) {
  while (arrived.load() < count) {
    std::this_thread::sleep_for(1ms);
  }
  std::this_thread::sleep_for(20ms);
}

class dump : public testing::Test {
 protected:
  void SetUp() override {
    released = false;
    arrived = 0;
  }
  void TearDown() override { released = true; }
};

TEST_F(dump, tells_names_states_waits_and_functions) {
  pirn::wait_queue queue;
  const int object = 0;
  pirn::runtime runtime({.workers = 2});
  {
    auto sleeper = runtime.spawn([] { dump_test_sleeps(); }, {.name = "sleeper", .worker = 0});
    auto waiter = runtime.spawn([&] { dump_test_waits(&queue, &object); }, {.name = "waiter", .worker = 1});
    auto yielder = runtime.spawn([] { dump_test_yields(); }, {.name = "yielder", .worker = 1});
    auto other = runtime.spawn([] { dump_test_yields(); }, {.name = "other", .worker = 1});
    auto joiner = runtime.spawn(
        [&] {
          auto inner = pirn::spawn([&] { dump_test_waits(&queue, &object); }, {.name = "inner"});
          inner.join();
        },
        {.name = "joiner", .worker = 0});
    wait_for_arrivals(5);

    const std::string all = dump_of(runtime);
    SCOPED_TRACE(all);
    EXPECT_TRUE(contains(all, ": 2 workers, 6 fibers\n"));
    EXPECT_TRUE(contains(all, "  worker 0 (thread "));
    EXPECT_TRUE(contains(all, "  worker 1 (thread "));

    EXPECT_TRUE(contains(part_of(all, "sleeper"), "fiber " + std::to_string(sleeper.number()) + " "));
    EXPECT_TRUE(contains(part_of(all, "sleeper"), ": waiting for time to pass, stack "));
    EXPECT_TRUE(contains(part_of(all, "sleeper"), " dump_test_sleeps+0x"));
    EXPECT_TRUE(contains(part_of(all, "waiter"), ": waiting for a letter at " + hex(&object) + ", stack "));
    EXPECT_TRUE(contains(part_of(all, "waiter"), " dump_test_waits+0x"));
    EXPECT_TRUE(contains(part_of(all, "inner"), " dump_test_waits+0x"));
    EXPECT_TRUE(contains(part_of(all, "joiner"), ": waiting for end of fiber at 0x"));
    for (const char* name : {"yielder", "other"}) {
      EXPECT_TRUE(contains(part_of(all, name), " dump_test_yields+0x")) << name;
      EXPECT_TRUE(contains(part_of(all, name), ": running") || contains(part_of(all, name), ": ready")) << name;
    }
    for (const char* name : {"sleeper", "waiter", "yielder", "other", "joiner", "inner"}) {
      EXPECT_TRUE(contains(part_of(all, name), "root_frame")) << name << " has no whole backtrace";
    }
    released = true;
    queue.notify_all();
  }
  EXPECT_TRUE(contains(dump_of(runtime), ": 2 workers, 0 fibers\n"));
}

TEST_F(dump, takes_one_that_is_about_to_be_resumed_for_ready) {
  if (!signals_strike_anywhere) {
    GTEST_SKIP();
  }
  const sink into;
  pirn::runtime* dumped = nullptr;
  pirn::runtime_options options{.workers = 1};
  options.trace = [&](const pirn::trace_event& event) {  // on the scheduler's stack, after the choice of the fiber
    if (event.what == pirn::trace_event::kind::resumed && !released.exchange(true)) {
      dumped->dump(into.descriptor());
    }
  };
  pirn::runtime runtime(options);
  dumped = &runtime;
  runtime.spawn([] { dump_test_yields(); }, {.name = "yielder"}).join();
  const std::string part = part_of(into.text(), "yielder");
  EXPECT_TRUE(contains(part, "\"yielder\": ready, stack ")) << part;
  EXPECT_TRUE(contains(part, " dump_test_yields+0x")) << part;
  EXPECT_TRUE(contains(part, "root_frame")) << part;
}

TEST_F(dump, tells_where_a_task_waits) {
  pirn::runtime runtime({.workers = 1});
  auto awaiting = runtime.spawn(
      [] {
        const auto outer = []() -> pirn::task<> { co_await dump_test_task(); };
        arrived.fetch_add(1);
        pirn::await(outer());
      },
      {.name = "awaiting"});
  wait_for_arrivals(1);
  std::string part;
  do {  // until the task sleeps, on a worker that no thread waits for
    part = part_of(dump_of(runtime), "awaiting");
  } while (!contains(part, "waiting for end of task at 0x"));
  EXPECT_TRUE(contains(part, ", which waits for time to pass, stack ")) << part;
  EXPECT_TRUE(contains(part, "    the task continues in:\n")) << part;
  EXPECT_TRUE(contains(part, "dump_test_task")) << part;
  EXPECT_TRUE(contains(part, "root_frame")) << part << "has no whole backtrace";
  awaiting.request_stop();
}

TEST_F(dump, shows_a_fiber_that_never_yields_and_those_behind_it) {
  if (!signals_strike_anywhere) {
    GTEST_SKIP();
  }
  pirn::runtime runtime({.workers = 1});
  auto spinner = runtime.spawn(
      [&] {
        auto child = pirn::spawn([] {}, {.name = "child"});
        dump_test_spins();
        child.join();
      },
      {.name = "spinner"});
  wait_for_arrivals(1);
  auto foreign = runtime.spawn([] {}, {.name = "foreign"});

  const std::string all = dump_of(runtime);
  SCOPED_TRACE(all);
  EXPECT_TRUE(contains(all, "): runs fiber " + std::to_string(spinner.number()) + "\n"));
  EXPECT_TRUE(contains(part_of(all, "spinner"), ": running, stack "));
  EXPECT_TRUE(contains(part_of(all, "spinner"), "#0 "));
  EXPECT_TRUE(contains(part_of(all, "spinner"), " dump_test_spins+0x"));
  EXPECT_TRUE(contains(part_of(all, "spinner"), "root_frame"));
  EXPECT_TRUE(contains(part_of(all, "child"), ": not started, stack "));
  EXPECT_TRUE(contains(part_of(all, "foreign"), ": not started, stack "));
  released = true;
}

TEST_F(dump, can_be_called_by_a_fiber) {
  pirn::runtime runtime({.workers = 2});
  auto sleeper = runtime.spawn([] { dump_test_sleeps(); }, {.name = "sleeper", .worker = 0});
  wait_for_arrivals(1);
  for (int worker = 0; worker < 2; ++worker) {
    std::string all;
    runtime.spawn([&] { all = dump_of(runtime); }, {.name = "dumper", .worker = worker}).join();
    SCOPED_TRACE(all);
    EXPECT_TRUE(contains(part_of(all, "sleeper"), " dump_test_sleeps+0x"));
    EXPECT_TRUE(contains(part_of(all, "dumper"), ": running, stack "));
  }
}

TEST_F(dump, does_not_show_a_fiber_that_has_ended) {
  pirn::runtime runtime({.workers = 1});
  std::string all;
  runtime
      .spawn([&] {
        auto ended = pirn::spawn([] {}, {.name = "departed"});
        pirn::this_fiber::yield();
        all = dump_of(runtime);
        ended.join();
      })
      .join();
  EXPECT_FALSE(contains(all, "departed")) << all;
}

TEST_F(dump, comes_by_the_signal_of_the_users_choice_for_all_runtimes) {
  pirn::runtime first({.workers = 1, .dump_signal = SIGUSR1});
  pirn::runtime second({.workers = 2, .dump_signal = SIGUSR2});
  auto one = first.spawn([] { dump_test_sleeps(); }, {.name = "of the first"});
  auto two = second.spawn([] { dump_test_sleeps(); }, {.name = "of the second"});
  wait_for_arrivals(2);
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    const captured_stderr capture;
    raise(signal);
    const std::string all = capture.text();
    EXPECT_EQ(occurrences(all, "pirn: runtime "), 2u);
    EXPECT_TRUE(contains(part_of(all, "of the first"), " dump_test_sleeps+0x"));
    EXPECT_TRUE(contains(part_of(all, "of the second"), " dump_test_sleeps+0x"));
  }
}

TEST_F(dump, signal_may_strike_a_worker_that_runs_a_fiber) {
  pirn::runtime runtime({.workers = 2, .dump_signal = SIGUSR1});
  auto sleeper = runtime.spawn([] { dump_test_sleeps(); }, {.name = "sleeper", .worker = 1});
  wait_for_arrivals(1);
  const captured_stderr capture;
  runtime.spawn([] { raise(SIGUSR1); }, {.name = "raiser", .worker = 0}).join();
  const std::string all = capture.text();
  SCOPED_TRACE(all);
  EXPECT_TRUE(contains(part_of(all, "raiser"), ": running, stack "));
  EXPECT_TRUE(contains(part_of(all, "sleeper"), " dump_test_sleeps+0x"));
}

TEST_F(dump, works_where_the_creator_of_the_runtime_blocks_all_signals) {
  sigset_t everything;
  sigset_t before;
  sigfillset(&everything);
  pthread_sigmask(SIG_SETMASK, &everything, &before);
  pirn::runtime runtime({.workers = 1, .dump_signal = SIGUSR1});
  auto sleeper = runtime.spawn([] { dump_test_sleeps(); }, {.name = "sleeper"});
  wait_for_arrivals(1);
  EXPECT_TRUE(contains(part_of(dump_of(runtime), "sleeper"), " dump_test_sleeps+0x"));
  {
    const captured_stderr capture;
    kill(getpid(), SIGUSR1);
    for (int i = 0; i < 500 && !contains(capture.text(), "root_frame"); ++i) {
      std::this_thread::sleep_for(10ms);
    }
    EXPECT_TRUE(contains(part_of(capture.text(), "sleeper"), " dump_test_sleeps+0x"));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::atomic<int> foreign_signals{0};
void count_foreign(int) { foreign_signals.fetch_add(1); }

TEST_F(dump, hands_on_signals_of_others_and_puts_their_handlers_back) {
  struct sigaction ours = {};
  ours.sa_handler = &count_foreign;
  struct sigaction before_urgent;
  struct sigaction before_user;
  sigaction(SIGURG, &ours, &before_urgent);
  sigaction(SIGUSR1, &ours, &before_user);
  {
    pirn::runtime runtime({.workers = 1, .dump_signal = SIGUSR1});
    EXPECT_TRUE(contains(dump_of(runtime), "0 fibers"));
    EXPECT_EQ(foreign_signals.load(), 0);
    raise(SIGURG);
    EXPECT_EQ(foreign_signals.load(), 1);
    {
      const pirn::runtime another({.workers = 1, .dump_signal = SIGUSR1});
    }
    raise(SIGURG);
    EXPECT_EQ(foreign_signals.load(), 2);
  }
  for (const int signal : {SIGURG, SIGUSR1}) {
    struct sigaction now;
    sigaction(signal, nullptr, &now);
    EXPECT_EQ(now.sa_handler, &count_foreign);
  }
  sigaction(SIGURG, &before_urgent, nullptr);
  sigaction(SIGUSR1, &before_user, nullptr);
}

TEST_F(dump, refuses_a_signal_that_cannot_be_caught) {
  for (const int signal : {SIGKILL, -1, 1000}) {
    EXPECT_THROW(pirn::runtime({.workers = 1, .dump_signal = signal}), std::system_error) << signal;
  }
}

/// Spawns fibers that yield, wait for each other and end.
void churn(pirn::wait_queue& queue, std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_relaxed)) {
    constexpr int count = 8;
    std::vector<pirn::fiber> children;
    children.reserve(count);
    for (int i = 0; i < count; ++i) {
      children.push_back(pirn::spawn(
          [&queue, i] {
            for (int round = 0; round < 10; ++round) {
              pirn::this_fiber::yield();
            }
            if (i % 4 == 0) {
              static_cast<void>(pirn::this_fiber::sleep_for(10us));
            } else if (i % 2 == 0) {
              queue.lock();
              static_cast<void>(queue.wait({.deadline = pirn::platform::now() + 100us, .what = "a neighbour"}));
            } else {
              queue.notify_one();
            }
          },
          {.name = "child", .worker = i % 3 == 0 ? pirn::spawn_options::any_worker : -1}));
    }
    for (auto& child : children) {
      child.join();
    }
  }
}

TEST_F(dump, may_come_at_any_moment) {
  pirn::wait_queue queue;
  std::atomic<bool> stop{false};
  pirn::runtime runtime({.workers = 2});
  std::vector<pirn::fiber> parents;
  parents.reserve(6);
  for (int worker = 0; worker < 2; ++worker) {
    for (int i = 0; i < 3; ++i) {
      parents.push_back(runtime.spawn([&] { churn(queue, stop); }, {.name = "parent", .worker = worker}));
    }
  }
  std::size_t parents_seen = 0;
  constexpr int rounds = 200;
  for (int i = 0; i < rounds; ++i) {
    const std::string all = dump_of(runtime);
    ASSERT_EQ(occurrences(all, "  worker "), 2u) << all;
    parents_seen += occurrences(all, "\"parent\"");
  }
  stop = true;
  for (auto& each : parents) {
    each.join();
  }
  // A dump misses a fiber spawned from outside while its worker takes it from the inbox.
  EXPECT_GE(parents_seen, 6u * (rounds - 20));
}

PIRN_NOINLINE void throw_one(int value) {
  if (value >= 0) {
    throw value;
  }
}

TEST_F(dump, may_come_while_an_exception_is_thrown) {
  std::atomic<bool> stop{false};
  pirn::runtime runtime({.workers = 1});
  pirn::fiber thrower = runtime.spawn([&] {
    for (int i = 0; !stop.load(std::memory_order_relaxed); ++i) {
      try {
        throw_one(i & 7);
      } catch (int) {
      }
      if (i % 64 == 0) {
        pirn::this_fiber::yield();
      }
    }
  });
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  // A few of some thousand instructions, of the unwinder, are critical: the build for daily work tries most often.
#if defined(__clang__) && defined(__GLIBCXX__)
  constexpr int many = 60'000;
#else
  constexpr int many = 15'000;
#endif
  // In an emulator a dump, which looks for names in the symbol tables, takes milliseconds.
  const bool slow = !std::is_empty_v<pirn::sanitizer_state> || std::getenv("PIRN_TEST_IS_CROSS") != nullptr;
  const int dumps = slow ? 400 : many;
  for (int i = 0; i < dumps; ++i) {
    runtime.dump(nowhere);
  }
  close(nowhere);
  stop = true;
  thrower.join();
}

TEST_F(dump, may_come_while_runtimes_come_and_go) {
  std::atomic<bool> stop{false};
  const pirn::runtime owner_of_the_signal({.workers = 1, .dump_signal = SIGUSR1});
  std::thread signaller([&] {
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const int original = dup(2);
    dup2(nowhere, 2);
    while (!stop.load()) {
      raise(SIGUSR1);
    }
    dup2(original, 2);
    close(nowhere);
    close(original);
  });
  for (int i = 0; i < 100; ++i) {
    pirn::runtime runtime({.workers = 2});
    runtime.run([] { pirn::spawn([] { pirn::this_fiber::yield(); }).join(); });
  }
  stop = true;
  signaller.join();
}

}  // namespace
