// Reports of stack overflows: their text, and the signal handlers and alternate stacks that produce them.

#include "pirn/stack/expert/overflow.hpp"

#include <alloca.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "detail/sandbox.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"
#include "stack/support.hpp"

namespace {

using pirn::guarded_pool;
using pirn::stack;
using stack_test::child_result;
using stack_test::in_child;

constexpr std::size_t KiB = 1024;

// ---- ways to run off a stack --------------------------------------------------------------------------------------

/// Not atomic: ThreadSanitizer would take a lock for that, and the end of the stack may strike there.
thread_local volatile int sink = 0;

extern "C" __attribute__((noinline)) int stack_test_recursion(int depth) {
  if (depth < 0) {
    return 0;
  }
  volatile unsigned char frame[96];
  frame[depth % 96] = static_cast<unsigned char>(depth);
  sink = frame[depth % 96];
  return stack_test_recursion(depth + 1) + frame[0];
}

/// Built with probes: each page of the frame is touched on the way down.
__attribute__((noinline)) void large_array() {
  char array[200 * KiB];
  asm volatile("" : : "r"(array) : "memory");
  array[0] = 1;
  asm volatile("" : : "r"(array) : "memory");
}

__attribute__((noinline)) void alloca_of(std::size_t bytes) {
  auto* const memory = static_cast<volatile unsigned char*>(alloca(bytes));
  memory[0] = 1;
  sink = memory[bytes / 2];
}

struct deep_destructor {
  ~deep_destructor() { sink = stack_test_recursion(1); }
};

__attribute__((noinline)) void in_destructor() {
  const deep_destructor local;
  sink = 1;
}

__attribute__((noinline)) void during_unwinding() {
  try {
    const deep_destructor local;
    throw 1;
  } catch (int) {
    sink = 2;
  }
}

using victim = void (*)();
const victim victims[] = {
    [] { sink = stack_test_recursion(0); },
    [] { large_array(); },
    [] { alloca_of(200 * KiB); },
    [] {
      for (std::size_t i = 1;; ++i) {
        alloca_of(i * KiB);
      }
    },
    [] { in_destructor(); },
    [] { during_unwinding(); },
};

// ---- children that overflow ---------------------------------------------------------------------------------------

void run_off(victim body) {
  guarded_pool pool;
  stack_test::run_on(pool.allocate(64 * KiB).value, body);
}

/// Overflows the stack on one of four OS threads.
int overflow_on_thread(victim body, int which) {
  const pirn::overflow_handler handler;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([=] {
      const pirn::overflow_thread alternate;
      if (i == which) {
        run_off(body);
      }
      usleep(10'000'000);
    });
  }
  threads[0].join();
  return 1;
}

int overflow_here(victim body) {
  const pirn::overflow_handler handler;
  const pirn::overflow_thread alternate;
  run_off(body);
  return 1;
}

TEST(overflow, a_thousand_of_a_thousand_are_reported) {
  const int count = stack_test::sanitized ? 24 : 1000;
  int reported = 0;
  for (int i = 0; i < count; ++i) {
    const victim body = victims[static_cast<std::size_t>(i) % std::size(victims)];
    const child_result child = i % 5 == 4 ? in_child([=] { return overflow_on_thread(body, i / 5 % 4); })
                                          : in_child([=] { return overflow_here(body); });
    // Otherwise a sanitizer's handler, which pirn's handler calls, ends the process.
    const bool seen =
        child.says("pirn: stack overflow in stack\n") && (stack_test::sanitized || child.killed_by(SIGSEGV));
    reported += seen ? 1 : 0;
    if (!seen) {
      ADD_FAILURE() << "case " << i << " status " << child.status << "\n" << child.error_output;
      break;
    }
  }
  EXPECT_EQ(reported, count);
}

TEST(overflow, the_message_says_who_how_large_how_deep_and_what_to_do) {
  const child_result child = in_child([] {
    const pirn::overflow_handler handler;
    const pirn::overflow_thread alternate;
    pirn::set_stack_describer([](const void* limit, const void* top, const void* fault, char* buffer,
                                 std::size_t size) noexcept -> std::size_t {
      const bool right = fault < limit && static_cast<const char*>(top) - static_cast<const char*>(limit) >= 65536;
      const char* const text = right ? "fiber \"parser\"" : "wrong stack";
      std::strncpy(buffer, text, size);
      return std::strlen(text);
    });
    guarded_pool pool;
    const stack earlier = pool.allocate(64 * KiB).value;
    const stack other = pool.allocate(64 * KiB).value;
    std::memset(static_cast<char*>(earlier.top()) - 10 * KiB, 1, 10 * KiB);
    pool.deallocate(earlier);
    pool.trim();
    stack_test::run_on(other, victims[0]);
    return 1;
  });
  EXPECT_TRUE(child.says("pirn: stack overflow in fiber \"parser\"")) << child.error_output;
  EXPECT_TRUE(child.says("of its size class: 12288 of 65536 bytes") ||
              child.says("of its size class: 10240 of 65536 bytes"))
      << child.error_output;
  EXPECT_TRUE(child.says("spawn_options{.stack_size = 131072}"));
  EXPECT_TRUE(child.says("stack_test_recursion+0x")) << child.error_output;
  EXPECT_TRUE(child.says(" x ")) << "equal frames are counted";
  EXPECT_EQ(child.error_output.find("stack overflow in"), child.error_output.rfind("pirn: stack overflow in") + 6)
      << "said once";
  if (!stack_test::sanitized) {
    EXPECT_LT(child.error_output.size(), 4000u);
  }
}

TEST(overflow, two_threads_at_once_do_not_mix_their_messages) {
  const child_result child = in_child([] {
    struct sigaction end = {};
    end.sa_handler = [](int) {
      static std::atomic<int> ended{0};
      if (++ended == 2) {
        _exit(42);
      }
      usleep(5'000'000);
      _exit(1);
    };
    sigaction(SIGSEGV, &end, nullptr);
    const pirn::overflow_handler handler;
    const auto one = [] {
      const pirn::overflow_thread alternate;
      run_off(victims[0]);
    };
    std::thread first(one);
    std::thread second(one);
    first.join();
    second.join();
    return 1;
  });
  EXPECT_TRUE(child.exited_with(42)) << child.status << child.error_output;
  const std::size_t first = child.error_output.find("pirn: stack overflow");
  const std::size_t second = child.error_output.find("pirn: stack overflow", first + 1);
  ASSERT_NE(second, std::string::npos) << child.error_output;
  EXPECT_LT(child.error_output.find("backtrace"), second);
}

// ---- handing on ---------------------------------------------------------------------------------------------------

void exit_with_42(int, siginfo_t* info, void* context) {
  const char text[] = "earlier handler\n";
  static_cast<void>(!write(STDERR_FILENO, text, sizeof text - 1));
  _exit(info->si_addr != nullptr && context != nullptr ? 42 : 43);
}

TEST(overflow, the_earlier_handler_is_called_after_the_message) {
  const child_result child = in_child([] {
    struct sigaction before = {};
    before.sa_sigaction = &exit_with_42;
    before.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &before, nullptr);
    return overflow_here(victims[0]);
  });
  EXPECT_TRUE(child.exited_with(42)) << child.status;
  const std::size_t message = child.error_output.find("pirn: stack overflow");
  ASSERT_NE(message, std::string::npos);
  EXPECT_GT(child.error_output.find("earlier handler"), message);
}

TEST(overflow, an_earlier_handler_without_siginfo_is_called_too) {
  const child_result child = in_child([] {
    struct sigaction before = {};
    before.sa_handler = [](int signal) { _exit(signal == SIGSEGV ? 44 : 45); };
    sigaction(SIGSEGV, &before, nullptr);
    return overflow_here(victims[1]);
  });
  EXPECT_TRUE(child.exited_with(44)) << child.status;
  EXPECT_TRUE(child.says("pirn: stack overflow"));
}

// The kernel would deliver the next signal to memory that is gone.
TEST(overflow, a_thread_that_cannot_have_its_stack_for_signals_back_keeps_ours) {
#if defined(PIRN_ASAN)
  GTEST_SKIP() << "AddressSanitizer itself asks for that stack";
#endif
  if (!pirn_test::can_refuse_calls()) {
    GTEST_SKIP() << "no seccomp filters here";
  }
  const child_result child = in_child([] {
    struct sigaction quiet = {};
    quiet.sa_handler = [](int) {};
    quiet.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &quiet, nullptr);
    {
      const pirn::overflow_thread alternate;
      if (!pirn_test::refuse_calls({SYS_sigaltstack}, EPERM)) {
        return 1;
      }
    }
    raise(SIGUSR1);
    return 0;
  });
  EXPECT_TRUE(child.exited_with(0)) << child.status << child.error_output;
}

TEST(overflow, another_fault_is_handed_on_unseen) {
  const auto fault = [] {
    const pirn::overflow_handler handler;
    const pirn::overflow_thread alternate;
    guarded_pool pool;
    const stack value = pool.allocate(64 * KiB).value;
    stack_test::run_on(value, [] {
      volatile int* volatile nowhere = reinterpret_cast<int*>(std::uintptr_t{16});
      *nowhere = 1;
    });
    return 1;
  };
  const child_result killed = in_child(fault);
  EXPECT_FALSE(killed.says("pirn: ")) << killed.error_output;
  if (!stack_test::sanitized) {
    EXPECT_TRUE(killed.killed_by(SIGSEGV));
  }
  const child_result handled = in_child([=] {
    struct sigaction before = {};
    before.sa_sigaction = &exit_with_42;
    before.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &before, nullptr);
    return fault();
  });
  EXPECT_TRUE(handled.exited_with(42)) << handled.status;
  EXPECT_FALSE(handled.says("pirn: "));
}

TEST(overflow, a_write_past_the_top_is_no_overflow) {
  const child_result child = in_child([] {
    const pirn::overflow_handler handler;
    const pirn::overflow_thread alternate;
    guarded_pool pool;
    const stack below = pool.allocate(64 * KiB).value;
    const stack above = pool.allocate(64 * KiB).value;
    char* const guard = stack_test::guard_of(above, pool.options().guard_size);
    stack_test::run_on(below, [=] { *static_cast<volatile char*>(guard) = 1; });
    return 1;
  });
  EXPECT_TRUE(child.says("not an overflow")) << child.error_output;
  EXPECT_FALSE(child.says("pirn: stack overflow"));
}

TEST(overflow, a_signal_that_was_sent_is_not_taken_for_a_fault) {
  const child_result child = in_child([] {
    const pirn::overflow_handler handler;
    raise(SIGSEGV);
    return 1;
  });
  EXPECT_FALSE(child.says("pirn: "));
  if (!stack_test::sanitized) {
    EXPECT_TRUE(child.killed_by(SIGSEGV)) << child.status;
  }
}

void marker(int) {}

TEST(overflow, the_last_handler_puts_the_earlier_one_back) {
  const child_result child = in_child([] {
    struct sigaction before = {};
    before.sa_handler = &marker;
    sigaction(SIGSEGV, &before, nullptr);
    const auto current = [] {
      struct sigaction now = {};
      sigaction(SIGSEGV, nullptr, &now);
      return now.sa_handler;
    };
    {
      const pirn::overflow_handler first;
      {
        const pirn::overflow_handler second;
      }
      if (current() == &marker) {
        return 1;
      }
    }
    return current() == &marker ? 0 : 2;
  });
  EXPECT_TRUE(child.exited_with(0)) << child.status;
}

TEST(overflow, the_alternate_stack_belongs_to_the_thread_for_as_long_as_it_lives) {
  std::thread([] {
    stack_t before = {};
    sigaltstack(nullptr, &before);
    {
      const pirn::overflow_thread alternate;
      stack_t now = {};
      sigaltstack(nullptr, &now);
      EXPECT_NE(now.ss_sp, before.ss_sp);
      EXPECT_GE(now.ss_size, 64 * KiB);
      EXPECT_FALSE(stack_test::readable(static_cast<char*>(now.ss_sp) - 1)) << "it has a guard";
    }
    stack_t after = {};
    sigaltstack(nullptr, &after);
    EXPECT_EQ(after.ss_sp, before.ss_sp);
    EXPECT_EQ(after.ss_flags, before.ss_flags);
  }).join();
}

// ---- asking -------------------------------------------------------------------------------------------------------

TEST(overflow, guards_are_recognised_by_address) {
  const void* guard_byte = nullptr;
  {
    guarded_pool pool;
    const stack value = pool.allocate(64 * KiB).value;
    const stack next = pool.allocate(64 * KiB).value;
    char* const limit = static_cast<char*>(value.limit());
    guard_byte = limit - 1;
    EXPECT_TRUE(pirn::is_guard_address(limit - 1));
    EXPECT_TRUE(pirn::is_guard_address(limit - 64 * KiB));
    EXPECT_FALSE(pirn::is_guard_address(limit - 64 * KiB - 1));
    EXPECT_FALSE(pirn::is_guard_address(limit));
    EXPECT_FALSE(pirn::is_guard_address(static_cast<char*>(value.top()) - 1));
    EXPECT_FALSE(pirn::is_guard_address(limit, value.size()));
    EXPECT_TRUE(pirn::is_guard_address(limit - 1, 2));
    EXPECT_TRUE(pirn::is_guard_address(limit, 64 * KiB + 16 * KiB)) << "reaches into the next one's guard";
    EXPECT_TRUE(pirn::is_guard_address(limit - 128 * KiB, 1024 * KiB)) << "spans it";
    EXPECT_FALSE(pirn::is_guard_address(nullptr, 1));
    EXPECT_FALSE(pirn::is_guard_address(&pool, sizeof pool));
    EXPECT_FALSE(pirn::is_guard_address(static_cast<char*>(next.top()) + 64 * KiB)) << "no stack was made there yet";
    pool.deallocate(value);
    EXPECT_TRUE(pirn::is_guard_address(limit - 1)) << "an idle stack keeps its guard";
    pool.deallocate(next);
  }
  EXPECT_FALSE(pirn::is_guard_address(guard_byte)) << "the pool is gone";
}

TEST(overflow, a_kernel_write_into_a_guard_can_be_named) {
  guarded_pool pool;
  const stack value = pool.allocate(64 * KiB).value;
  char* const target = static_cast<char*>(value.limit()) - 8;
  const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(read(zero, target, 8), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_TRUE(pirn::is_guard_address(target, 8));
  close(zero);
  pool.deallocate(value);
}

}  // namespace
