// Warnings of fibers that keep their workers busy, and of fibers that suspend while they hold a pthread mutex.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;

/// Redirects standard error while it exists.
class captured_stderr {
 public:
  captured_stderr() : file_(std::tmpfile()), original_(dup(2)) { dup2(fileno(file_), 2); }
  ~captured_stderr() {
    dup2(original_, 2);
    close(original_);
    std::fclose(file_);
  }
  captured_stderr(const captured_stderr&) = delete;
  captured_stderr& operator=(const captured_stderr&) = delete;
  /// Returns how often `what` was written so far.
  [[nodiscard]] std::size_t times(const std::string& what) const {
    std::string all;
    char buffer[4096];
    off_t at = 0;
    for (ssize_t got = 0; (got = pread(fileno(file_), buffer, sizeof buffer, at)) > 0; at += got) {
      all.append(buffer, static_cast<std::size_t>(got));
    }
    std::size_t count = 0;
    for (std::size_t found = 0; (found = all.find(what, found)) != std::string::npos; found += what.size()) {
      ++count;
    }
    return count;
  }

 private:
  std::FILE* file_;
  int original_;
};

}  // namespace

// A name that a test looks for in a backtrace.
extern "C" [[gnu::noinline]] void monitor_test_computes(const std::function<bool()>& enough) {
  while (!enough()) {
    std::this_thread::sleep_for(100us);  // ThreadSanitizer delivers signals in such calls only
  }
  asm volatile("");
}

namespace {

TEST(monitor, warns_once_of_a_fiber_that_keeps_its_worker) {
  const captured_stderr output;
  {
    rig r(2, {.stall_threshold = 20ms});
    r.rt.spawn(
            [&] {
              pirn::this_fiber::yield();
              monitor_test_computes([&] { return output.times(" has kept worker 1 for ") != 0; });
              const auto until = clock::now() + 100ms;
              monitor_test_computes([&] { return clock::now() > until; });
            },
            {.name = "greedy", .worker = 1})
        .join();
  }
  EXPECT_EQ(output.times(" has kept worker "), 1u);
  EXPECT_EQ(output.times("\"greedy\" has kept worker 1 for "), 1u);
  EXPECT_EQ(output.times("monitor_test_computes+0x"), 1u);
}

TEST(monitor, does_not_warn_of_fibers_that_take_turns_or_wait) {
  const captured_stderr output;
  {
    rig r(1, {.stall_threshold = 200ms});
    r.rt.run([&] {
      const auto until = clock::now() + 600ms;
      const auto work = [&] {
        while (clock::now() < until) {
          const auto turn = clock::now() + 2ms;
          compute_until([&] { return clock::now() > turn; });
          pirn::this_fiber::yield();
        }
      };
      pirn::fiber other = pirn::spawn(work);
      work();
      other.join();
      static_cast<void>(pirn::this_fiber::sleep_for(50ms));
    });
  }
  EXPECT_EQ(output.times(" has kept worker "), 0u);
}

#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)

TEST(monitor, warns_of_a_fiber_that_suspends_while_it_holds_a_mutex) {
  for (const int how : {0, 1, 2}) {
    const captured_stderr output;
    {
      rig r(1);
      r.rt.spawn(
              [&] {
                pirn::fiber other = pirn::spawn([] { pirn::this_fiber::yield(); }, {.name = "innocent"});
                std::mutex held;
                const std::lock_guard guard(held);
                switch (how) {
                  case 0:
                    pirn::this_fiber::yield();
                    break;
                  case 1:
                    static_cast<void>(pirn::this_fiber::sleep_for(1ms));
                    break;
                  default:
                    break;  // the join below
                }
                other.join();
              },
              {.name = "holder"})
          .join();
    }
    EXPECT_EQ(output.times("\"holder\" suspends while it holds a pthread mutex\n"), 1u) << how;
    EXPECT_EQ(output.times("suspends while"), 1u) << how;
    EXPECT_NE(output.times("    #0 "), 0u) << how;
    EXPECT_EQ(output.times("switch_slow"), 0u) << how << ": the backtrace begins inside of pirn";
    if (how != 0) {  // a yield is inlined
      EXPECT_NE(output.times(how == 1 ? "sleep_" : "5fiber"), 0u) << how << ": it does not show what was called";
    }
  }
}

TEST(monitor, does_not_warn_of_mutexes_that_are_let_go_of_in_time) {
  const captured_stderr output;
  {
    rig r(2);
    std::mutex lock;
    std::recursive_mutex again;
    const auto work = [&] {
      for (int i = 0; i < scaled(1000); ++i) {
        {
          const std::lock_guard first(lock);
          const std::lock_guard second(again);
          const std::unique_lock third(again, std::try_to_lock);
        }
        pirn::this_fiber::yield();
      }
    };
    std::vector<pirn::fiber> fibers;
    for (int i = 0; i < 4; ++i) {
      fibers.push_back(r.rt.spawn(work, {.worker = i % 2}));
    }
    join_all(fibers);
  }
  EXPECT_EQ(output.times("suspends while"), 0u);
}

#endif

}  // namespace
