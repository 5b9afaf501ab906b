/* The native threads of rr.h, with SINGLE_THREAD its form without locks, with LOCAL ll.h: they run on the CPUs that the
   program chooses, and preempt threads that compute. */
#include <errno.h>
#include <sched.h>
#include <signal.h>

#include "check.h"
#include "usched.h"
#ifdef LOCAL
#include "ll.h"
#define FORM(name) ll_##name
#else
#include "rr.h"
#define FORM(name) rr_##name
#endif

/* As many as rr.h gives to one native thread before the next native thread gets some. */
enum { RUN = 128 };
#ifdef SINGLE_THREAD
enum { NATIVES = 1 };
#else
enum { NATIVES = 2 };
#endif
enum { ALL = RUN * NATIVES, PERIOD_US = 1000 };

static int ran;

static void make(void (*f)(void*), int index) {
#ifdef LOCAL
  CHECK(ll_thread_init(f, (void*)(long)index, index / RUN) != NULL);
#else
  CHECK(rr_thread_init(f, (void*)(long)index) != NULL);
#endif
}
static void begin(void (*f)(void*), int count) {
  int i;
  ran = 0;
  CHECK(FORM(init)(NATIVES, ALL) == 0);
  for (i = 0; i < count; ++i) {
    make(f, i);
  }
}
static void all_end(int count) {
  CHECK(FORM(start)() == 0);
  FORM(fini)();
  CHECK(ran == count);
}
static void none_runs(int error) {
  CHECK(FORM(start)() == error);
  FORM(fini)();
  CHECK(ran == 0);
}

/* The CPUs that this process may use, and those that its native threads shall use. */
static cpu_set_t usable;
static int chosen(int native) {
  int number = native % CPU_COUNT(&usable);
  int cpu;
  for (cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &usable) && number-- == 0) {
      return cpu;
    }
  }
  return -1;
}
static int any(int native) {
  (void)native;
  return -1;
}
static int beyond_all(int native) {
  (void)native;
  return CPU_SETSIZE;
}
static int absent(int native) {
  (void)native;
  return CPU_SETSIZE - 1;
}
static void is_where_it_was_put(void* index) {
  cpu_set_t here;
  CHECK(sched_getaffinity(0, sizeof here, &here) == 0);
  CHECK(CPU_COUNT(&here) == 1 && CPU_ISSET(chosen((int)(long)index / RUN), &here));
  __atomic_add_fetch(&ran, 1, __ATOMIC_SEQ_CST);
}
static void may_be_anywhere(void* unused) {
  cpu_set_t here;
  (void)unused;
  CHECK(sched_getaffinity(0, sizeof here, &here) == 0 && CPU_EQUAL(&here, &usable));
  __atomic_add_fetch(&ran, 1, __ATOMIC_SEQ_CST);
}
static void threads_run_where_the_program_says(void) {
  begin(is_where_it_was_put, ALL);
  FORM(affinity)(chosen);
  all_end(ALL);
  begin(may_be_anywhere, ALL); /* by init the choice is forgotten */
  all_end(ALL);
  begin(may_be_anywhere, ALL);
  FORM(affinity)(any);
  all_end(ALL);
  begin(may_be_anywhere, ALL);
  FORM(affinity)(beyond_all);
  none_runs(-EINVAL);
  if (!CPU_ISSET(absent(0), &usable)) {
    begin(may_be_anywhere, ALL);
    FORM(affinity)(absent);
    none_runs(-EINVAL);
  }
}

/* Three threads of one native thread have turns, and compute until theirs comes. So each must be preempted. */
enum { THREADS = 3, TURNS = 20 };
static volatile int turn;
USCHED_PREEMPTIBLE static void await_turn(int number) {
  while (turn != number) {
  }
}
static void takes_turns(void* index) {
  int i;
  for (i = 0; i < TURNS; ++i) {
    await_turn(i * THREADS + (int)(long)index);
    ++turn;
  }
  ++ran;
}
static void threads_that_compute_are_preempted(void) {
  turn = 0;
  begin(takes_turns, THREADS);
  FORM(preempt)(SIGRTMIN + 1, PERIOD_US);
#ifdef PIRN_TEST_SANITIZED
  none_runs(-ENOTSUP);
#else
  all_end(THREADS);
  begin(takes_turns, THREADS);
  FORM(preempt)(SIGKILL, PERIOD_US);
  none_runs(-EINVAL);
#endif
}

/* By init preemption is forgotten too: the signal would end the program. */
static void runs_long(void* unused) {
  volatile long i;
  (void)unused;
  for (i = 0; i < 30000000; ++i) {
  }
  ++ran;
}
static void others_are_not(void) {
  signal(SIGRTMIN + 1, SIG_DFL);
  begin(runs_long, 1);
  all_end(1);
}

int main(void) {
  alarm(60);
  CHECK(sched_getaffinity(0, sizeof usable, &usable) == 0);
  threads_run_where_the_program_says();
  threads_that_compute_are_preempted();
  others_are_not();
  return 0;
}
