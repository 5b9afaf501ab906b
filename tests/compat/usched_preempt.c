/* Threads that never block are preempted by a timer's signal: where the program allows it, with nothing lost. */
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "check.h"
#include "usched.h"

enum { threads = 4, period_us = 1000 };

struct world {
  struct usched dispatcher; /* first: callbacks get its address */
  struct ustack* ready[64];
  unsigned first;
  unsigned last;
  int preempted; /* how often s_preempt said yes */
  int asked;
};
struct thread {
  struct ustack stack;
  struct world* of;
  unsigned long seed;
  unsigned long result;
  int ended;
};

static void push(struct world* w, struct ustack* u) { w->ready[w->last++ % 64] = u; }
static struct ustack* next_ready(struct usched* dispatcher) {
  struct world* const w = (struct world*)dispatcher;
  return w->first == w->last ? NULL : w->ready[w->first++ % 64];
}
static void* allocate(struct usched* dispatcher, int size) {
  void* const memory = malloc((size_t)size);
  (void)dispatcher;
  CHECK(memory != NULL);
  return memory;
}
static void give_back(struct usched* dispatcher, void* memory, int size) {
  (void)dispatcher;
  (void)size;
  free(memory);
}
static int preempt(struct usched* dispatcher, struct ustack* running) {
  struct world* const w = (struct world*)dispatcher;
  ++w->asked;
  errno = ERANGE; /* must not be seen by the thread */
  if (w->first == w->last) {
    return 0;
  }
  ++w->preempted;
  push(w, running);
  return 1;
}

/* Has many values in registers, of both kinds, and some in its frame. */
USCHED_PREEMPTIBLE static unsigned long compute(unsigned long seed, unsigned long turns) {
  unsigned long a = seed, b = seed + 1, c = seed + 2, d = seed + 3, e = seed + 4, f = seed + 5;
  double x = (double)seed, y = 1.5, z = 0.25;
  unsigned long kept[8];
  unsigned long i;
  for (i = 0; i < 8; ++i) {
    kept[i] = seed * i;
  }
  for (i = 0; i < turns; ++i) {
    a += b ^ i;
    b = (b << 7 | b >> 57) + c;
    c ^= d + kept[i % 8];
    d = d * 6364136223846793005ul + 1;
    e += f ^ a;
    f = (f << 3) ^ e ^ (f >> 5);
    kept[i % 8] += a;
    x = x * 0.5 + y;
    y = y * 0.75 + z;
    z = z * 0.5 + 1.0;
  }
  for (i = 0; i < 8; ++i) {
    a ^= kept[i];
  }
  return a ^ b ^ c ^ d ^ e ^ f ^ (unsigned long)(x * 1000 + y * 100 + z * 10);
}

static unsigned long turns_of_compute = 15000000;

static void run_compute(void* arg) {
  struct thread* const self = (struct thread*)arg;
  errno = (int)self->seed + 1;
  self->result = compute(self->seed, turns_of_compute);
  __asm__ volatile("" : : : "memory"); /* the compiler knows that compute leaves errno alone */
  CHECK(errno == (int)self->seed + 1);
  self->ended = 1;
}

/* Is inside malloc nearly always, where it must not be preempted. */
static void run_malloc(void* arg) {
  struct thread* const self = (struct thread*)arg;
  unsigned i;
  for (i = 0; i < 3000000; ++i) {
    char* const memory = (char*)malloc(i % 2000 + 1100);
    __asm__ volatile("" : : "r"(memory) : "memory"); /* or the compiler leaves it out */
    memory[0] = (char)i;
    self->result += (unsigned char)memory[0];
    free(memory);
    if (i % 64 == 0) {
      usched_preemption_point();
    }
  }
  self->ended = 1;
}

/* Computes on another stack, where it must not be preempted: the frames of the thread would not be all in its image. */
static ucontext_t outside;
static ucontext_t inside;
static char other_stack[1 << 16];
static unsigned long of_other_stack;
static void compute_there(void) { of_other_stack = compute(7, turns_of_compute); }
static void run_on_other_stack(void* arg) {
  struct thread* const self = (struct thread*)arg;
  if (self->seed == 0) {
    const int before = self->of->asked;
    CHECK(getcontext(&inside) == 0);
    inside.uc_stack.ss_sp = other_stack;
    inside.uc_stack.ss_size = sizeof other_stack;
    inside.uc_link = &outside;
    makecontext(&inside, compute_there, 0);
    CHECK(swapcontext(&outside, &inside) == 0);
    CHECK(self->of->asked == before);
    usched_preemption_point(); /* here it may be */
    CHECK(self->of->asked > before);
  }
  self->ended = 1;
}

/* Threads that are preempted are left behind: by usched_run, and by their own program. */
static struct ustack* next_or_end(struct usched* dispatcher) {
  struct world* const w = (struct world*)dispatcher;
  return w->preempted >= threads ? NULL : next_ready(dispatcher);
}

static struct world w;
static struct thread all[threads];

static void start_all(void (*body)(void*), int (*asks)(struct usched*, struct ustack*)) {
  int i;
  memset(&w, 0, sizeof w);
  w.dispatcher.s_next = next_ready;
  w.dispatcher.s_alloc = allocate;
  w.dispatcher.s_free = give_back;
  w.dispatcher.s_preempt = asks;
  for (i = 0; i < threads; ++i) {
    memset(&all[i], 0, sizeof all[i]);
    all[i].of = &w;
    all[i].seed = (unsigned long)i;
    ustack_init(&all[i].stack, &w.dispatcher, body, &all[i], NULL, 0);
    push(&w, &all[i].stack);
  }
}
static void run(void (*body)(void*), int (*asks)(struct usched*, struct ustack*)) {
  int i;
  start_all(body, asks);
  usched_run(&w.dispatcher);
  for (i = 0; i < threads; ++i) {
    CHECK(all[i].ended);
    free(all[i].stack.u_stack);
  }
}

/* usched_run returns while all are preempted. The first two are forgotten, and the others run on later. */
static void leave_preempted(void) {
  int i;
  int left = 0;
  start_all(run_compute, preempt);
  w.dispatcher.s_next = next_or_end;
  usched_run(&w.dispatcher);
  for (i = 0; i < threads; ++i) {
    left += !all[i].ended;
  }
  CHECK(left == threads);
  w.dispatcher.s_next = next_ready;
  w.first = w.last;
  for (i = 0; i < threads; ++i) {
    if (i < 2) {
      free(all[i].stack.u_stack);
      all[i].stack.u_stack = NULL;
    } else {
      push(&w, &all[i].stack);
    }
  }
  usched_run(&w.dispatcher);
  for (i = 0; i < threads; ++i) {
    CHECK(all[i].ended == (i >= 2));
    CHECK(i < 2 || all[i].result == compute((unsigned long)i, turns_of_compute));
    free(all[i].stack.u_stack);
  }
}

/* A thread that was preempted ends by ustack_abort, in the marked function's caller. */
static void compute_and_abort(void* arg) {
  struct thread* const self = (struct thread*)arg;
  self->result = compute(self->seed, turns_of_compute);
  self->ended = 1;
  ustack_abort();
}

/* A thread that was preempted ends its OS thread; the others are still preempted, and run on in a cleanup. */
static void run_rest(void* dispatcher) {
  usched_run((struct usched*)dispatcher);
  CHECK(usched_preempt(SIGRTMIN + 1, 0) == 0);
}
static void compute_and_exit(void* arg) {
  struct thread* const self = (struct thread*)arg;
  self->result = compute(self->seed, turns_of_compute);
  self->ended = 1;
  if (self->seed == 0) {
    pthread_exit(NULL);
  }
}
static void* native_that_is_ended(void* unused) {
  CHECK(usched_preempt(SIGRTMIN + 1, period_us) == 0);
  start_all(compute_and_exit, preempt);
  pthread_cleanup_push(run_rest, &w.dispatcher);
  usched_run(&w.dispatcher);
  CHECK(0);
  pthread_cleanup_pop(0);
  return unused;
}
static void end_native(void) {
  pthread_t native;
  int i;
  CHECK(pthread_create(&native, NULL, native_that_is_ended, NULL) == 0 && pthread_join(native, NULL) == 0);
  CHECK(w.preempted >= 10);
  for (i = 0; i < threads; ++i) {
    CHECK(all[i].ended && all[i].result == compute((unsigned long)i, turns_of_compute));
    free(all[i].stack.u_stack);
  }
}

/* The kernel begins a handler with the defaults of the control words. */
static void check_rounding(void* arg) {
  struct thread* const self = (struct thread*)arg;
  if (self->seed == 0) {
    self->result = compute(0, turns_of_compute);
  }
  CHECK(fegetround() == FE_UPWARD);
  self->ended = 1;
}
static void share_rounding(void) {
  CHECK(fesetround(FE_UPWARD) == 0);
  run(check_rounding, preempt);
  CHECK(w.preempted >= 1 && fegetround() == FE_UPWARD);
  CHECK(fesetround(FE_TONEAREST) == 0);
}

int main(void) {
  int i;
  const int begun = usched_preempt(SIGRTMIN + 1, period_us);
#if defined(PIRN_TEST_SANITIZED)
  CHECK(begun == -ENOTSUP);
  return 0;
#endif
  CHECK(begun == 0);
  run(run_compute, preempt);
  CHECK(w.preempted >= 10);
  for (i = 0; i < threads; ++i) {
    CHECK(all[i].result == compute((unsigned long)i, turns_of_compute));
  }
  share_rounding();
  run(run_malloc, preempt);
  CHECK(w.preempted >= 10);
  run(run_on_other_stack, preempt);
  CHECK(of_other_stack == compute(7, turns_of_compute));
  leave_preempted();
  run(compute_and_abort, preempt);
  CHECK(w.preempted >= 10);
  run(run_compute, NULL);
  CHECK(w.asked == 0);
  CHECK(usched_preempt(SIGRTMIN + 1, 0) == 0);
  run(run_compute, preempt);
  CHECK(w.asked == 0);
  end_native();
  CHECK(usched_preempt(SIGRTMIN + 1, -1) == -EINVAL && usched_preempt(SIGKILL, 100) == -EINVAL);
  return 0;
}
