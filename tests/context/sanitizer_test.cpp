// The hooks of the sanitizers: they know the stacks of contexts, and report overruns, uses after return, leaks and
// races there.

#include "pirn/context/expert/sanitizer.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "pirn/context/arch.hpp"
#include "pirn/detail/platform.hpp"

namespace {

using pirn::sanitizer_state;
using pirn::arch::word;
namespace arch = pirn::arch;

constexpr std::size_t stack_size = std::size_t{128} * 1024;

/// Memory that no scanner searches unasked, unlike a heap block.
class mapping {
 public:
  mapping()
      : bytes_(
            static_cast<char*>(mmap(nullptr, stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
  }
  ~mapping() { munmap(bytes_, stack_size); }
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;
  [[nodiscard]] char* get() const { return bytes_; }

 private:
  char* bytes_;
};

/// A context that runs a function and calls the hooks of both parties as the header requires.
class hooked_context {
 public:
  using body = void (*)(hooked_context&);
  hooked_context(const mapping& stack, body run, void* for_run = nullptr) : argument(for_run), run_(run) {
    outside_hooks_.adopt_thread();
    inside_hooks_.create(stack.get(), stack_size, "hooked");
    inside_ = arch::prepare(stack.get() + stack_size, &enter);
  }
  ~hooked_context() {
    inside_hooks_.destroy();
    outside_hooks_.destroy();
  }
  hooked_context(const hooked_context&) = delete;
  hooked_context& operator=(const hooked_context&) = delete;

  PIRN_ALWAYS_INLINE void resume() {
    word first = reinterpret_cast<word>(this), second = 0;
    outside_hooks_.leave(inside_hooks_);
    arch::switch_to(outside_, inside_, first, second);
    outside_hooks_.arrive();
  }
  PIRN_ALWAYS_INLINE void yield() {
    word first = 0, second = 0;
    inside_hooks_.leave(outside_hooks_);
    arch::switch_to(inside_, outside_, first, second);
    inside_hooks_.arrive();
  }
  /// Makes the calling thread the resumer from now on.
  void adopt_thread() {
    outside_hooks_.destroy();
    outside_hooks_.adopt_thread();
  }
  [[nodiscard]] bool ended() const { return ended_; }

  void* argument;

 private:
  static void enter(word first, word) {
    auto* self = reinterpret_cast<hooked_context*>(first);
    self->inside_hooks_.arrive();
    self->run_(*self);
    self->ended_ = true;
    word one = 0, two = 0;
    self->inside_hooks_.leave_for_good(self->outside_hooks_);
    arch::switch_to(self->inside_, self->outside_, one, two);
  }

  body run_;
  arch::context inside_, outside_;
  sanitizer_state inside_hooks_, outside_hooks_;
  bool ended_ = false;
};

/// Uses a local array that ASan puts on the fake stack, and keeps it across a yield.
PIRN_NOINLINE long yield_with_array(hooked_context& context, int depth) {
  volatile char local[256];
  std::memset(const_cast<char*>(local), depth, sizeof local);
  long sum = 0;
  if (depth > 0) {
    sum = yield_with_array(context, depth - 1);
  } else {
    context.yield();
  }
  for (const volatile char& byte : local) {
    sum += byte;
  }
  return sum;
}

void sum_arrays(hooked_context& context) { *static_cast<long*>(context.argument) = yield_with_array(context, 4); }

TEST(sanitizer, twin_is_empty_without_a_sanitizer) {
#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
  EXPECT_FALSE(std::is_empty_v<sanitizer_state>);
#else
  EXPECT_TRUE(std::is_empty_v<sanitizer_state>);
#endif
}

TEST(sanitizer, context_runs_to_its_end) {
  long sum = 0;
  const mapping stack;
  hooked_context context(stack, &sum_arrays, &sum);
  context.resume();
  context.resume();
  EXPECT_TRUE(context.ended());
  EXPECT_EQ(sum, (0 + 1 + 2 + 3 + 4) * 256);
}

void throw_and_catch(hooked_context& context) {
  for (int i = 0; i < 3; ++i) {
    try {
      yield_with_array(context, 2);
      throw std::runtime_error("inside");
    } catch (const std::runtime_error& caught) {
      *static_cast<std::string*>(context.argument) += caught.what();
    }
  }
}

TEST(sanitizer, exceptions_unwind_inside_a_context) {
  std::string caught;
  const mapping stack;
  hooked_context context(stack, &throw_and_catch, &caught);
  while (!context.ended()) {
    context.resume();
    try {
      throw std::runtime_error("outside");
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "outside");
    }
  }
  EXPECT_EQ(caught, "insideinsideinside");
}

TEST(sanitizer, many_contexts_interleaved) {
  constexpr std::size_t count = 20;
  std::vector<long> sums(count);
  const std::vector<mapping> stacks(count);
  std::vector<std::unique_ptr<hooked_context>> contexts;
  contexts.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    contexts.push_back(std::make_unique<hooked_context>(stacks[i], &sum_arrays, &sums[i]));
  }
  for (int turn = 0; turn < 2; ++turn) {
    for (auto& context : contexts) {
      context->resume();
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(contexts[i]->ended());
    EXPECT_EQ(sums[i], 10 * 256);
  }
}

TEST(sanitizer, never_resumed_context_is_destroyed) {
  for (int i = 0; i < 100; ++i) {
    const mapping stack;
    const hooked_context context(stack, &sum_arrays);
  }
}

TEST(sanitizer, suspended_context_is_destroyed) {
  for (int i = 0; i < 100; ++i) {
    long sum = 0;
    const mapping stack;
    hooked_context context(stack, &sum_arrays, &sum);
    context.resume();
    EXPECT_FALSE(context.ended());
  }
}

/// Leaves red zones on the real stack, where alloca always is.
void suspend_with_alloca(hooked_context& context) {
  auto* dynamic = static_cast<volatile char*>(__builtin_alloca(1000));
  dynamic[0] = 1;
  context.yield();
  dynamic[999] = 2;
}

TEST(sanitizer, stack_of_a_destroyed_context_is_ordinary_memory) {
  const mapping stack;
  {
    hooked_context context(stack, &suspend_with_alloca);
    context.resume();
  }
  std::memset(stack.get(), 1, stack_size);
  EXPECT_EQ(stack.get()[stack_size - 1], 1);
}

struct journey {
  int value = 0;
  void* workers[3] = {};
};

void note_workers(hooked_context& context) {
  auto& seen = *static_cast<journey*>(context.argument);
  for (void*& worker : seen.workers) {
    worker = pirn::platform::current_worker();
    seen.value += 1;
    context.yield();
  }
}

// Another thread may resume a context if something orders the two threads: here the thread's start and join. The
// current worker is then that thread's, although both reads are in one function.
TEST(sanitizer, context_moves_between_threads) {
  int first_worker = 0, second_worker = 0;
  journey seen;
  const mapping stack;
  hooked_context context(stack, &note_workers, &seen);
  pirn::platform::set_current_worker(&first_worker);
  context.resume();
  EXPECT_EQ(seen.value, 1);
  std::thread([&] {
    pirn::platform::set_current_worker(&second_worker);
    context.adopt_thread();
    context.resume();
  }).join();
  context.adopt_thread();
  context.resume();
  pirn::platform::set_current_worker(nullptr);
  EXPECT_EQ(seen.value, 3);
  EXPECT_EQ(seen.workers[0], &first_worker);
  EXPECT_EQ(seen.workers[1], &second_worker);
  EXPECT_EQ(seen.workers[2], &first_worker);
}

#if defined(PIRN_ASAN)

/// Lets a variable's address escape. ASan puts no frame with an asm on the fake stack, and so none that switches. The
/// tests below therefore keep variables that must be there in the callers of such frames.
PIRN_NOINLINE void escape(void* address) { asm volatile("" : : "r"(address) : "memory"); }
PIRN_NOINLINE void yield_called(hooked_context& context) { context.yield(); }
PIRN_NOINLINE void resume_called(hooked_context& context) { context.resume(); }

/// ASan dies with the message; without detection nothing happens.
PIRN_NOINLINE void overrun(std::size_t count) {
  char local[64];
  volatile char* bytes = local;
  asm volatile("" : "+r"(bytes));  // UBSan would find it first
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = 1;
  }
}

TEST(sanitizer_death, overrun_inside_a_context_is_found) {
  EXPECT_DEATH(
      {
        const mapping stack;
        hooked_context context(stack, [](hooked_context&) { overrun(72); });
        context.resume();
      },
      "stack-buffer-overflow");
}

char* kept;
PIRN_NOINLINE void keep_local() {
  volatile char local[64];
  local[0] = 1;
  kept = const_cast<char*>(local);
}

/// Whether frames go to a fake stack: by default with clang, on demand with gcc.
bool detects_use_after_return() { return __asan_get_current_fake_stack() != nullptr; }

TEST(sanitizer_death, use_after_return_inside_a_context_is_found) {
  if (!detects_use_after_return()) {
    GTEST_SKIP() << "detect_stack_use_after_return is off";
  }
  EXPECT_DEATH(
      {
        const mapping stack;
        hooked_context context(stack, [](hooked_context& self) {
          keep_local();
          self.yield();
          static_cast<volatile char*>(kept)[0] = 2;
        });
        context.resume();
        context.resume();
      },
      "stack-use-after-return");
}

/// The address space that the process has mapped, in bytes.
std::size_t mapped_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  statm >> pages;
  return pages * 4096;
}

TEST(sanitizer, fake_stacks_of_destroyed_contexts_are_freed) {
  constexpr std::size_t count = 200, fake_stack = 11 * stack_size;
  const mapping stack;
  const std::size_t before = mapped_bytes();
  for (std::size_t i = 0; i < count; ++i) {
    long sum = 0;
    hooked_context context(
        stack,
        [](hooked_context& self) {
          volatile char local[64];
          escape(const_cast<char*>(local));
          yield_called(self);
        },
        &sum);
    context.resume();
  }
  EXPECT_LT(mapped_bytes(), before + count * fake_stack / 2);
}

// ---- leaks --------------------------------------------------------------------------------------------------------

/// Allocates in a separate frame and returns the address in a form that no scanner recognizes.
PIRN_NOINLINE word hidden_allocation() { return ~reinterpret_cast<word>(new int(7)); }

PIRN_NOINLINE void scrub_below() {
  volatile char below[32 * 1024];
  std::memset(const_cast<char*>(below), 0, sizeof below);
}

/// Overwrites the registers of the other party, and the remains of earlier calls below the stack pointer.
PIRN_ALWAYS_INLINE void scrub() {
  asm volatile(
      "xorl %%eax, %%eax\n\txorl %%ebx, %%ebx\n\txorl %%ecx, %%ecx\n\txorl %%edx, %%edx\n\txorl %%esi, %%esi\n\t"
      "xorl %%edi, %%edi\n\txorl %%r8d, %%r8d\n\txorl %%r9d, %%r9d\n\txorl %%r10d, %%r10d\n\t"
      "xorl %%r11d, %%r11d\n\txorl %%r12d, %%r12d\n\txorl %%r13d, %%r13d\n\txorl %%r14d, %%r14d\n\t"
      "xorl %%r15d, %%r15d"
      :
      :
      : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory");
  scrub_below();
}

/// The only pointer to an allocation, in a variable whose address is taken and so on the fake stack, or in one that
/// is spilled to the real stack.
PIRN_NOINLINE void hold_on_fake_stack(hooked_context& context) {
  int* pointer[4] = {};
  escape(pointer);
  EXPECT_TRUE(!detects_use_after_return() ||
              __asan_addr_is_in_fake_stack(__asan_get_current_fake_stack(), pointer, nullptr, nullptr) != nullptr);
  pointer[1] = reinterpret_cast<int*>(~hidden_allocation());
  escape(pointer);
  yield_called(context);
  delete pointer[1];
}
__attribute__((noinline, no_sanitize_address)) void hold_on_real_stack(hooked_context& context) {
  int* pointer = reinterpret_cast<int*>(~hidden_allocation());
  asm volatile("" : "+r"(pointer));  // prevents the compiler from computing it only after the yield
  context.yield();
  delete pointer;
}

/// Runs `check` with the stack of `context` reachable only by its registration.
void expect_no_leak_while_suspended(hooked_context::body body) {
  const mapping stack;
  hooked_context context(stack, body);
  context.resume();
  scrub();
  EXPECT_EQ(__lsan_do_recoverable_leak_check(), 0);
  context.resume();
  EXPECT_TRUE(context.ended());
}

TEST(sanitizer_leak, pointer_on_the_fake_stack_of_a_suspended_context_is_seen) {
  expect_no_leak_while_suspended(&hold_on_fake_stack);
}

TEST(sanitizer_leak, pointer_on_the_stack_of_a_suspended_context_is_seen) {
  expect_no_leak_while_suspended(&hold_on_real_stack);
}

// The thread's own stack is suspended too while one of its contexts runs.
TEST(sanitizer_leak, pointer_on_the_suspended_stack_of_the_thread_is_seen) {
  int leaks = -1;
  const mapping stack;
  hooked_context context(
      stack,
      [](hooked_context& self) {
        scrub();
        *static_cast<int*>(self.argument) = __lsan_do_recoverable_leak_check();
      },
      &leaks);
  int* pointer[4] = {};
  escape(pointer);
  pointer[1] = reinterpret_cast<int*>(~hidden_allocation());
  escape(pointer);
  resume_called(context);
  EXPECT_EQ(leaks, 0);
  delete pointer[1];
}

TEST(sanitizer_leak, true_leak_is_reported) {
  const mapping stack;
  hooked_context context(stack, [](hooked_context& self) {
    *static_cast<word*>(self.argument) = hidden_allocation();
    scrub();
    self.yield();
  });
  word hidden = 0;
  context.argument = &hidden;
  context.resume();
  scrub();
  EXPECT_NE(__lsan_do_recoverable_leak_check(), 0);
  delete reinterpret_cast<int*>(~hidden);
  context.resume();
}

#endif

#if defined(PIRN_TSAN)

TEST(sanitizer_death, race_between_a_context_and_a_thread_is_found) {
  EXPECT_DEATH(
      {
        int value = 0;
        const mapping stack;
        hooked_context context(stack, [](hooked_context& self) { *static_cast<int*>(self.argument) += 1; }, &value);
        std::thread other([&value] {
          for (int i = 0; i < 1000; ++i) {
            static_cast<volatile int&>(value) = i;
            std::this_thread::yield();
          }
        });
        context.resume();
        other.join();
        std::abort();  // reached only when no race was reported
      },
      "data race");
}

// TSan identifies the owner of a mutex by its context. Its report shows that it knows of the switch.
TEST(sanitizer_death, contexts_are_told_apart) {
  EXPECT_DEATH(
      {
        std::mutex mutex;
        const mapping stack;
        hooked_context context(
            stack,
            [](hooked_context& self) {
              static_cast<std::mutex*>(self.argument)->lock();
              self.yield();
            },
            &mutex);
        context.resume();
        mutex.unlock();
        std::abort();  // reached only when nothing was reported
      },
      "unlock of an unlocked mutex");
}

#endif

}  // namespace
