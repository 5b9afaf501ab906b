// Runtimes in a process whose system calls fail. A container's profile that does not know a call answers EPERM or
// EACCES where an old kernel answers ENOSYS.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "detail/sandbox.hpp"
#include "fiber/support.hpp"
#include "pirn/fiber/blocking.hpp"

namespace {

using namespace pirn_test;

#if defined(SYS_epoll_wait)
constexpr long older_wait = SYS_epoll_wait;
#else
constexpr long older_wait = SYS_epoll_pwait;
#endif

class sandbox_death : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (!can_refuse_calls()) {
      GTEST_SKIP() << "no seccomp filters here";
    }
  }
};

std::chrono::microseconds cpu_time() {
  rusage raw{};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &raw), 0);
  return std::chrono::seconds(raw.ru_utime.tv_sec + raw.ru_stime.tv_sec) +
         std::chrono::microseconds(raw.ru_utime.tv_usec + raw.ru_stime.tv_usec);
}

/// Checks that idle workers sleep, and wake for timers, other workers and other threads. Returns what has failed.
const char* sleeps_and_wakes() {
  rig r(2);
  const auto cpu_before = cpu_time();
  const auto before = clock::now();
  r.rt.run([] {
    static_cast<void>(pirn::this_fiber::sleep_for(300ms));
    static_cast<void>(pirn::this_fiber::sleep_for(300us));
  });
  if (clock::now() - before < 300ms) {
    return "woke too early";
  }
  if (cpu_time() - cpu_before > 150ms) {
    return "spun";
  }
  for (int i = 0; i < 20; ++i) {
    bool ran = false;
    r.rt.run([&] { pirn::spawn([&] { pirn::blocking([&] { ran = true; }); }, {.worker = i % 2}).join(); });
    if (!ran) {
      return "lost a call";
    }
  }
  return nullptr;
}

[[noreturn]] void exit_with(const char* failure) {
  if (failure != nullptr) {
    std::fputs(failure, stderr);
  }
  std::_Exit(failure == nullptr ? 0 : 1);
}

TEST_F(sandbox_death, without_a_call_that_another_can_stand_in_for) {
  for (const int error : {ENOSYS, EPERM, EACCES, EINVAL}) {
    for (const long call : {long{SYS_epoll_pwait2}, older_wait}) {
      if (call == SYS_epoll_pwait) {
        continue;  // no other call can replace it
      }
      EXPECT_EXIT(
          {
            refuse_calls({call}, error);
            exit_with(sleeps_and_wakes());
          },
          testing::ExitedWithCode(0), "")
          << "call " << call << ", error " << error;
    }
  }
}

TEST_F(sandbox_death, without_any_way_to_wait) {
  EXPECT_DEATH(
      {
        refuse_calls({SYS_epoll_pwait2, SYS_epoll_pwait, older_wait}, EPERM);
        exit_with(sleeps_and_wakes());
      },
      "pirn: epoll_wait failed \\(error 1, .*would spin forever");
}

// Programs do that when they become daemons, or before they start others.
TEST_F(sandbox_death, whose_descriptors_are_closed_by_others) {
  EXPECT_DEATH(
      {
        rig r(1);
        r.rt.run([] {
          for (int each = 3; each < 1000; ++each) {
            ::close(each);
          }
          static_cast<void>(pirn::this_fiber::sleep_for(10s));
        });
        std::_Exit(0);
      },
      "pirn: epoll_wait failed .*has closed the engine's descriptor, which it does not own");
}

}  // namespace
