/* A profiler's signal strikes while coroutines are switched and copied: ten thousand times a second, and on x86 also at
 * every instruction of a while. Every backtrace finds its way out, wherever it begins. */
#include "aco.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include <unwind.h>

#include "check.h"

static volatile sig_atomic_t strikes, in_coroutines, lost;
static uintptr_t lost_at;
static aco_share_stack_t* stacks[2];
static uintptr_t end_of_program; /* in the outermost frame of main */

static uintptr_t pc_of(const void* context) {
#if defined(__x86_64__)
  return (uintptr_t)((const ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__i386__)
  return (uintptr_t)((const ucontext_t*)context)->uc_mcontext.gregs[REG_EIP];
#else
  return (uintptr_t)((const ucontext_t*)context)->uc_mcontext.pc;
#endif
}

struct walk {
  int frames;
  uintptr_t outermost;
};
static _Unwind_Reason_Code note_frame(struct _Unwind_Context* at, void* walk) {
  struct walk* const seen = (struct walk*)walk;
  const uintptr_t pc = (uintptr_t)_Unwind_GetIP(at);
  seen->outermost = pc != 0 ? pc : seen->outermost;
  return ++seen->frames < 1000 ? _URC_NO_REASON : _URC_FATAL_PHASE1_ERROR;
}
static __attribute__((noinline)) void turn(size_t bytes) {
  char* const block = (char*)__builtin_alloca(bytes);
  memset(block, (int)bytes & 0xff, bytes);
  __asm__ volatile("" : : "r"(block) : "memory");
  aco_yield();
  __asm__ volatile("" : : "r"(block) : "memory");
  CHECK((unsigned char)block[0] == (bytes & 0xff) && (unsigned char)block[bytes - 1] == (bytes & 0xff));
}
static void turns(void) {
  for (;;) {
    turn((size_t)(uintptr_t)aco_get_arg());
  }
}

/* Whether the unwind tables of the code at `pc` hold. The C library's start and the linker's pieces have none. */
#if defined(__i386__)
/* Its memcpy and others push words that their tables do not know of, so only what belongs to coroutines is looked at.
 */
extern char pirn_aco_enter[], pirn_aco_leave[], pirn_aco_enter_own[], pirn_aco_leave_own[];
static int has_tables(uintptr_t pc) {
  const uintptr_t at = (uintptr_t)_Unwind_FindEnclosingFunction((void*)pc);
  return at == (uintptr_t)turn || at == (uintptr_t)turns || at == (uintptr_t)aco_resume || at == (uintptr_t)aco_yield ||
         at == (uintptr_t)pirn_aco_enter || at == (uintptr_t)pirn_aco_leave || at == (uintptr_t)pirn_aco_enter_own ||
         at == (uintptr_t)pirn_aco_leave_own;
}
#else
static int has_tables(uintptr_t pc) { return _Unwind_FindEnclosingFunction((void*)pc) != NULL; }
#endif
static void look(const void* context) {
  struct walk seen = {0, 0};
  const uintptr_t pc = pc_of(context);
  const char* const here = (const char*)&seen;
  int i;
  strikes = strikes + 1;
  for (i = 0; i < 2; ++i) {
    const char* const stack = (const char*)stacks[i]->ptr;
    in_coroutines = in_coroutines + (here >= stack && here < stack + stacks[i]->sz);
  }
  if (!has_tables(pc)) {
    return;
  }
  if (_Unwind_Backtrace(note_frame, &seen) != _URC_END_OF_STACK || seen.frames < 3 ||
      (seen.outermost != end_of_program && seen.outermost != (uintptr_t)aco_funcp_protector_asm)) {
    lost_at = lost == 0 ? pc : lost_at;
    lost = lost + 1;
  }
}
static void on_profile(int number, siginfo_t* what, void* context) {
  (void)number;
  (void)what;
  look(context);
}

static void handle(int number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART; /* on the stack that it strikes: no SA_ONSTACK */
  CHECK(sigaction(number, &action, NULL) == 0);
}
static void check_none_lost(const char* how) {
  if (lost != 0) {
    fprintf(stderr, "%s: %d of %d backtraces were lost, first at %p\n", how, (int)lost, (int)strikes, (void*)lost_at);
    exit(1);
  }
}

enum { coroutines = 7 };
static aco_t* co[coroutines];

static void turn_of_each(void) {
  int i;
  for (i = 0; i < coroutines; ++i) {
    aco_resume(co[i]);
  }
}

static void profile(void) {
  struct sigevent event;
  struct itimerspec interval;
  timer_t timer;
  handle(SIGPROF, on_profile);
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGPROF;
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  memset(&interval, 0, sizeof interval);
  interval.it_value.tv_nsec = interval.it_interval.tv_nsec = 100000;
  CHECK(timer_settime(timer, 0, &interval, NULL) == 0);
  while (strikes < 2000 || in_coroutines < 200) {
    turn_of_each();
  }
  CHECK(timer_delete(timer) == 0);
  CHECK(signal(SIGPROF, SIG_IGN) != SIG_ERR);
  check_none_lost("profiled");
}

#if defined(__x86_64__) || defined(__i386__)
static volatile sig_atomic_t stepping;
static void on_step(int number, siginfo_t* what, void* context) {
  greg_t* const flags = &((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL];
  (void)number;
  (void)what;
  *flags = stepping ? (*flags | 0x100) : (*flags & ~(greg_t)0x100);
  if (stepping) {
    look(context);
  }
}
static void step(void) {
  strikes = in_coroutines = 0;
  handle(SIGTRAP, on_step);
  stepping = 1;
  CHECK(raise(SIGTRAP) == 0);
  turn_of_each();
  stepping = 0;
  __asm__ volatile("nop" : : : "memory"); /* the trap after this one finds that stepping is over */
  CHECK(signal(SIGTRAP, SIG_DFL) != SIG_ERR);
  CHECK(strikes > 300 && in_coroutines > 100);
  check_none_lost("step by step");
}
#else
static void step(void) {}
#endif

int main(void) {
  static const unsigned short sizes[coroutines] = {8, 16, 100, 200, 600, 2000, 9000};
  struct walk here = {0, 0};
  aco_t* main_co;
  int i;
  aco_thread_init(NULL);
  main_co = aco_create(NULL, NULL, 0, NULL, NULL);
  for (i = 0; i < 2; ++i) {
    stacks[i] = aco_share_stack_new(0);
  }
  for (i = 0; i < coroutines; ++i) { /* the largest is alone on its stack */
    co[i] = aco_create(main_co, stacks[i == coroutines - 1], 0, turns, (void*)(uintptr_t)sizes[i]);
  }
  CHECK(_Unwind_Backtrace(note_frame, &here) == _URC_END_OF_STACK); /* it allocates the first time */
  end_of_program = here.outermost;
  turn_of_each();
  profile();
  step();
  for (i = 0; i < coroutines; ++i) {
    aco_destroy(co[i]);
  }
  aco_share_stack_destroy(stacks[0]);
  aco_share_stack_destroy(stacks[1]);
  aco_destroy(main_co);
  return 0;
}
