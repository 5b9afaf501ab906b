// Signal handlers may strike anywhere while swapped tasks take turns. They run on the same stack: the kernel overwrites
// the memory below the interrupted sp, and the handlers walk the frames above it.
#include <execinfo.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <unwind.h>

#include <array>
#include <cstdint>
#include <deque>
#include <new>

#include "pirn/coro/expert/stack_swap.hpp"

namespace {

class ready_list {
 public:
  void ready(pirn::swapped_task& who) { ready_.push_back(&who); }
  pirn::swapped_task* next() noexcept {
    if (ready_.empty()) {
      return nullptr;
    }
    pirn::swapped_task* const first = ready_.front();
    ready_.pop_front();
    return first;
  }
  void* allocate(std::size_t size) noexcept { return ::operator new(size, std::nothrow); }
  void free(void* buffer, std::size_t) noexcept { ::operator delete(buffer); }

 private:
  std::deque<pirn::swapped_task*> ready_;
};

struct wanderer : pirn::swapped_task {
  ready_list* list = nullptr;
  pirn::stack_swap<ready_list>* swap = nullptr;
  std::uint64_t seed = 0;
  int turns = 0;
  bool right = true;

  PIRN_NOINLINE void go(int depth) {
    volatile std::uint64_t marks[8];
    for (unsigned i = 0; i < 8; ++i) {
      marks[i] = seed * 31 + static_cast<std::uint64_t>(depth) * 8 + i;
    }
    if (depth > 0) {
      go(depth - 1);
    }
    list->ready(*this);
    right = swap->block() == pirn::swap_error::none && right;
    for (unsigned i = 0; i < 8; ++i) {
      right = marks[i] == seed * 31 + static_cast<std::uint64_t>(depth) * 8 + i && right;
    }
  }
  static void run(wanderer& self) {
    for (int turn = 0; turn < self.turns; ++turn) {
      self.go(static_cast<int>((self.seed + static_cast<unsigned>(turn)) % 4));
    }
  }
};

/// Swapped tasks of different depths block in turns.
bool turns(int each) {
  ready_list list;
  pirn::stack_swap swap(list);
  std::array<wanderer, 5> all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].list = &list;
    all[i].swap = &swap;
    all[i].seed = i;
    all[i].turns = each;
    all[i].assign<&wanderer::run>(all[i]);
    list.ready(all[i]);
  }
  bool right = swap.run() == pirn::swap_error::none;
  for (const wanderer& each_one : all) {
    right = each_one.right && each_one.done() && right;
  }
  return right;
}

/// As `turns`, with `Bytes` more bytes on the stack.
template <std::size_t Bytes>
PIRN_NOINLINE bool turns_below(int each) {
  volatile char room[Bytes + 1];
  room[Bytes] = 0;
  return turns(each) && room[Bytes] == 0;
}

volatile long strikes;
volatile long endless;
volatile long unclean;

_Unwind_Reason_Code count_frame(_Unwind_Context* frame, void* counted) {
  if (_Unwind_GetIP(frame) != 0) {
    ++*static_cast<int*>(counted);
  }
  return *static_cast<int*>(counted) < 200 ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

// At a `ret` clang's tables for i386 still give the place from which ebp was popped. Without a red zone the handler's
// frame lies there.
#if defined(__clang__) && defined(__i386__)
constexpr bool can_walk = false;
#else
constexpr bool can_walk = true;
#endif

void walk() {
  int frames = 0;
  const _Unwind_Reason_Code how = can_walk ? _Unwind_Backtrace(&count_frame, &frames) : _URC_END_OF_STACK;
  strikes = strikes + 1;
  endless = endless + (frames >= 200 ? 1 : 0);
  unclean = unclean + (how == _URC_END_OF_STACK ? 0 : 1);
}

void handle(int number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART;  // on the interrupted stack: no SA_ONSTACK
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
  strikes = 0;
  endless = 0;
  unclean = 0;
}

TEST(StackSwapSignal, ProfilerStrikesAnywhere) {
  handle(SIGPROF, [](int, siginfo_t*, void*) { walk(); });
  const itimerval often = {{0, 500}, {0, 500}};
  setitimer(ITIMER_PROF, &often, nullptr);
  bool right = true;
  for (int i = 0; i < 20'000 && strikes < 30; ++i) {
    right = turns(50) && right;
  }
  const itimerval never = {};
  setitimer(ITIMER_PROF, &never, nullptr);
  signal(SIGPROF, SIG_IGN);
  EXPECT_TRUE(right);
  EXPECT_GE(strikes, 30);
  EXPECT_EQ(endless, 0);
}

#if defined(__x86_64__) && !defined(PIRN_ASAN) && !defined(PIRN_TSAN) && !defined(PIRN_VALGRIND)
constexpr std::uint64_t trap_flag = 0x100;
volatile bool stepping;
volatile std::uintptr_t first_unclean;

TEST(StackSwapSignal, AtEveryInstruction) {
  handle(SIGTRAP, [](int, siginfo_t*, void* raw) {
    auto& registers = static_cast<ucontext_t*>(raw)->uc_mcontext.gregs;
    if (!stepping) {
      registers[REG_EFL] &= ~static_cast<greg_t>(trap_flag);
      return;
    }
    registers[REG_EFL] |= static_cast<greg_t>(trap_flag);
    const long before = unclean;
    walk();
    if (unclean != before && first_unclean == 0) {
      first_unclean = static_cast<std::uintptr_t>(registers[REG_RIP]);
    }
  });
  stepping = true;
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"
      "pushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
      "leaq 128(%%rsp), %%rsp" ::
          : "memory", "cc");
  // The kernel aligns its frames and leaves gaps in them, in which a word would survive.
  const bool right = turns_below<0>(3) && turns_below<32>(3);
  stepping = false;
  asm volatile("nop" ::: "memory");
  signal(SIGTRAP, SIG_DFL);
  EXPECT_TRUE(right);
  EXPECT_GT(strikes, 1000);
  EXPECT_EQ(endless, 0);
  EXPECT_EQ(unclean, 0) << "first at " << reinterpret_cast<void*>(first_unclean);
}
#endif

}  // namespace
