/* The end of the example schedulers of usched: rr_fini, with LOCAL ll_fini, lets all threads end that other threads
   still make and wake. */
#include <pthread.h>

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
enum { RUN = 128, NATIVES = 2 };

static int made;
static int ran;
static int rounds;

static void make(void (*f)(void*), void* argument) {
#ifdef LOCAL
  CHECK(ll_thread_init(f, argument, made++ / RUN) != NULL);
#else
  ++made;
  CHECK(rr_thread_init(f, argument) != NULL);
#endif
}
static void count(void* unused) {
  (void)unused;
  __atomic_add_fetch(&ran, 1, __ATOMIC_SEQ_CST);
}
static void make_rest_of_run(void) {
  while (made % RUN != 0) {
    make(count, NULL);
  }
}
static void all_end_after(void (*f)(void*)) {
  made = 0;
  ran = 0;
  rounds = 0;
  CHECK(FORM(init)(NATIVES, NATIVES * RUN) == 0);
  make(f, NULL);
  CHECK(FORM(start)() == 0);
  FORM(fini)();
  CHECK(ran == made);
}
/* By now fini waits, and other native threads have nothing to do. */
static void let_others_fall_asleep(void) { usleep(50000); }

static void makes_some_everywhere(void* unused) {
  let_others_fall_asleep();
  while (made < NATIVES * RUN) {
    make(count, NULL);
  }
  count(unused);
}

/* Each native thread gets something to do from the previous one, more than once. */
static void makes_next(void* unused) {
  let_others_fall_asleep();
  make_rest_of_run();
  make(++rounds < 3 * NATIVES ? makes_next : count, NULL);
  count(unused);
}

/* Another native thread makes the only thread that can wake a certain thread. */
static struct FORM(thread) * waiter;
static void wakes(void* unused) {
  FORM(wake)(waiter);
  count(unused);
}
static void makes_waker(void* unused) {
  let_others_fall_asleep();
  make_rest_of_run();
  make(wakes, NULL);
  count(unused);
}
static void waits(void* unused) {
  waiter = (struct FORM(thread)*)ustack_self();
  make_rest_of_run();
  make(makes_waker, NULL);
  FORM(wait)();
  count(unused);
}

#ifndef LOCAL
/* A thread that is woken from outside may wait as long as that takes, and make more threads then. */
static void* wake_from_without(void* unused) {
  let_others_fall_asleep();
  rr_wake(waiter);
  return unused;
}
static void waits_for_another(void* unused) {
  pthread_t other;
  waiter = (struct rr_thread*)ustack_self();
  CHECK(pthread_create(&other, NULL, wake_from_without, NULL) == 0 && pthread_detach(other) == 0);
  rr_wait();
  makes_some_everywhere(unused);
}
#endif

int main(void) {
  alarm(30);
  all_end_after(makes_some_everywhere);
  all_end_after(makes_next);
  all_end_after(waits);
#ifndef LOCAL
  all_end_after(waits_for_another);
#endif
  return 0;
}
