// Calls without a substitute that the kernel refuses: the process ends and names the call.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <thread>

#include "detail/sandbox.hpp"
#include "pirn/detail/platform.hpp"

namespace {

namespace platform = pirn::platform;
using pirn_test::refuse_calls;

class refused_death : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (!pirn_test::can_refuse_calls()) {
      GTEST_SKIP() << "no seccomp filters here";
    }
  }
};

TEST_F(refused_death, a_fence_that_others_rely_on) {
  if (!platform::fences_are_asymmetric()) {
    GTEST_SKIP() << "the fences of this build need no system call";
  }
  for (const int error : {EPERM, EACCES, ENOSYS, ENOMEM}) {
    EXPECT_DEATH(
        {
          refuse_calls({SYS_membarrier}, error);
          platform::heavy_fence();
        },
        "pirn: membarrier failed \\(error " + std::to_string(error) + ".*allowed when the program began");
  }
}

TEST_F(refused_death, a_wait_that_would_spin_and_a_wake_up_that_would_be_lost) {
  for (const int error : {EPERM, ENOSYS}) {
    EXPECT_DEATH(
        {
          const platform::signal_atomic<std::uint32_t> word{1};
          refuse_calls({SYS_futex}, error);
          for (int i = 0; i < 1000; ++i) {
            platform::futex_wait(word, 1, platform::now() + std::chrono::milliseconds(1));
          }
          std::_Exit(0);
        },
        "pirn: futex failed \\(error " + std::to_string(error));
    EXPECT_DEATH(
        {
          const platform::signal_atomic<std::uint32_t> word{1};
          refuse_calls({SYS_futex}, error);
          platform::futex_wake(&word, 1);
          std::_Exit(0);
        },
        "pirn: futex failed \\(error " + std::to_string(error));
  }
}

TEST(refused, a_word_that_is_gone_may_be_woken) {
  platform::futex_wake(reinterpret_cast<const platform::signal_atomic<std::uint32_t>*>(std::uintptr_t{4096}), 1);
}

/// A global of the highest priority that a user's global may have.
struct early {
  bool asymmetric = platform::fences_are_asymmetric();
};
[[gnu::init_priority(102)]] const early constructed_first;

TEST(refused, what_fences_are_is_known_to_any_global) {
  EXPECT_EQ(constructed_first.asymmetric, platform::fences_are_asymmetric());
}

}  // namespace
