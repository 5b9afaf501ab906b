// A profiler's signal strikes ten thousand times a second while images are copied: every backtrace from there ends.
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>
#include <unwind.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "pirn/stack/expert/copy_stack.hpp"
#include "support.hpp"

namespace {

using pirn::copied_context;
using pirn::copy_stack;
using pirn::arch::word;

volatile sig_atomic_t strikes, on_shared, unclean;
const copy_stack* shared;

struct walk {
  int frames;
};
void on_profile(int) {
  walk seen{};
  const _Unwind_Reason_Code end = _Unwind_Backtrace(
      [](_Unwind_Context*, void* raw) {
        return ++static_cast<walk*>(raw)->frames < 1000 ? _URC_NO_REASON : _URC_FATAL_PHASE1_ERROR;
      },
      &seen);
  strikes = strikes + 1;
  on_shared = on_shared + (shared->memory().contains(&seen) ? 1 : 0);
  unclean = unclean + (end == _URC_END_OF_STACK && seen.frames > 2 ? 0 : 1);
}

// A POSIX timer: the interval timers tick no faster than the kernel.
class profiling_timer {
 public:
  profiling_timer() {
    struct sigaction action = {};
    action.sa_handler = &on_profile;
    action.sa_flags = SA_RESTART;
    sigaction(SIGPROF, &action, nullptr);
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGPROF;
    timer_create(CLOCK_MONOTONIC, &event, &timer_);
    const itimerspec interval = {{0, 100'000}, {0, 100'000}};
    timer_settime(timer_, 0, &interval, nullptr);
  }
  ~profiling_timer() {
    timer_delete(timer_);
    signal(SIGPROF, SIG_IGN);
  }

 private:
  timer_t timer_ = {};
};

struct parameters {
  copy_stack* on;
  std::size_t bytes;
};
PIRN_NOINLINE void work(copy_stack& on, std::size_t bytes) {
  auto* const block = static_cast<unsigned char*>(__builtin_alloca(bytes));
  for (unsigned turn = 0;; ++turn) {
    std::memset(block, static_cast<int>(turn & 0xff), bytes);
    asm volatile("" : : "r"(block) : "memory");
    word words[pirn::arch::value_words] = {};
    on.suspend(words);
    asm volatile("" : : "r"(block) : "memory");
    if (block[0] != (turn & 0xff) || block[bytes - 1] != (turn & 0xff)) {
      std::abort();
    }
  }
}
PIRN_NONE void enter(void* pc, void* sp, void* fp, word first, word, word, word) {
  const auto& mine = *reinterpret_cast<const parameters*>(first);
  mine.on->entered(pc, sp, fp);
  work(*mine.on, mine.bytes);
  mine.on->finish({0, 0, 0, 0});
}

TEST(copy_stack_signal_test, sp_is_a_valid_stack_throughout) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "an emulator's signal frames cannot be unwound";
#endif
  if (stack_test::sanitized) {
    GTEST_SKIP() << "their runtimes delay signals, and their frames cannot be unwound from everywhere";
  }
  copy_stack on(std::size_t{1} << 17);
  shared = &on;
  constexpr std::size_t amount = 64;
  std::vector<parameters> each;
  std::vector<copied_context> contexts;
  for (std::size_t i = 0; i < amount; ++i) {
    each.push_back({&on, 8 + i * i});
    contexts.emplace_back(on, &enter);
  }
  const profiling_timer timer;
  timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    for (std::size_t turn = 0; turn < 20000; ++turn) {
      copied_context& one = contexts[turn * 7 % amount];
      word words[pirn::arch::value_words] = {reinterpret_cast<word>(&each[turn * 7 % amount]), 0, 0, 0};
      ASSERT_EQ(one.bring_in(), pirn::stack_error::none);
      one.run(words);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec - begin.tv_sec < 20 && (strikes < 3000 || on_shared < 50));
  EXPECT_GE(strikes, 100);
  EXPECT_GE(on_shared, 5);
  EXPECT_EQ(unclean, 0);
}

}  // namespace
