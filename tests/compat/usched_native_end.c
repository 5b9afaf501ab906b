/* pthread_exit and pthread_cancel in threads of the example schedulers of usched, rr.h, with SINGLE_THREAD its form
   without locks, with LOCAL ll.h: each ends that thread alone. The native thread runs its other threads to their ends,
   and ends itself in fini. With NO_TABLES, frames without unwind tables, which cannot be left so. */
#include <pthread.h>
#include <time.h>

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
enum { RUN = 128, TURNS = 10 };

static int natives;
static int cancelled;
static int made;
static int natives_left; /* native threads that have ended */
static int wakers;
static int wakers_ran;
static pthread_key_t at_end_of_native;

static void add(int* to) { __atomic_add_fetch(to, 1, __ATOMIC_SEQ_CST); }
static void count_native(void* unused) {
  (void)unused;
  add(&natives_left);
}

static void make(void (*f)(void*), void* argument) {
#ifdef LOCAL
  CHECK(ll_thread_init(f, argument, made++ / RUN) != NULL);
#else
  ++made;
  CHECK(rr_thread_init(f, argument) != NULL);
#endif
}
static __thread int group;         /* of the threads of this native thread, in ll.h */
static __thread int was_cancelled; /* a thread is cancelled once, and has ended then as far as the C library knows */

/* Each native thread that has run any thread is counted when it ends. */
static void begin_thread(void* index) {
  group = (int)(long)index / RUN;
  CHECK(pthread_setspecific(at_end_of_native, &made) == 0);
}
static void wakes(void* who) {
  FORM(wake)((struct FORM(thread)*)who);
  add(&wakers_ran);
}
/* Waits until another thread, a new one, wakes it. */
static void turn(void) {
  void* const self = ustack_self();
  add(&wakers);
#ifdef LOCAL
  CHECK(ll_thread_init(wakes, self, group) != NULL);
#else
  CHECK(rr_thread_init(wakes, self) != NULL);
#endif
  FORM(wait)();
}
static void end_native(void) {
  if (cancelled && !was_cancelled) {
    was_cancelled = 1;
    CHECK(pthread_cancel(pthread_self()) == 0);
    pthread_testcancel();
    CHECK(0);
  }
  pthread_exit(NULL);
}

#ifndef NO_TABLES
static int ran;  /* threads that have returned */
static int left; /* threads that have ended their native thread */

static void turns(int count) {
  while (--count >= 0) {
    turn();
  }
}
static void count_left(int* unused) {
  (void)unused;
  add(&left);
}
static void returns(void* index) {
  begin_thread(index);
  turns(TURNS);
  add(&ran);
}
static void leaves(void* index) {
  __attribute__((cleanup(count_left))) int here = (int)(long)index;
  begin_thread(index);
  turns(here % TURNS);
  end_native();
}
/* By now fini waits, and other native threads have nothing to do. */
static void let_others_fall_asleep(void) {
  struct timespec a_while = {0, 50000000};
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  nanosleep(&a_while, NULL);
  pthread_setcancelstate(before, NULL);
}

/* When each native thread has been ended by a thread, it still accepts new ones. */
static void makes_more(void* index) {
  begin_thread(index);
  let_others_fall_asleep();
  while (made < 2 * natives * RUN) {
    make(returns, (void*)(long)made);
  }
  add(&ran);
}
static struct FORM(thread) * waiter;
static void waits(void* index) {
  begin_thread(index);
  waiter = (struct FORM(thread)*)ustack_self();
  FORM(wait)();
  add(&ran);
}
/* Wakes another in a cleanup. */
static void wake_waiter(int* unused) {
  (void)unused;
  FORM(wake)(waiter);
  add(&left);
}
static void wakes_at_its_end(void* index) {
  __attribute__((cleanup(wake_waiter))) int here = 0;
  begin_thread(index);
  end_native();
  ++here;
}

static void forget_all(void) {
  made = 0;
  ran = 0;
  left = 0;
  natives_left = 0;
  wakers = 0;
  wakers_ran = 0;
}
static void all_end(void (*fill)(void)) {
  forget_all();
  CHECK(FORM(init)(natives, natives * RUN) == 0);
  fill();
  CHECK(FORM(start)() == 0);
  FORM(fini)();
  CHECK(ran + left == made && wakers_ran == wakers);
}

static void half_of_them(void) {
  while (made < natives * RUN) {
    make(made % 2 != 0 ? leaves : returns, (void*)(long)made);
  }
}
static void all_of_them(void) {
  while (made < natives * RUN) {
    make(leaves, (void*)(long)made);
  }
}
static void first_of_each(void) {
  int run;
  for (run = 0; run < natives; ++run) {
    make(leaves, (void*)(long)made);
    while (made % RUN != 0 && run + 1 < natives) {
      make(returns, (void*)(long)made);
    }
  }
  make(makes_more, (void*)(long)made);
}
static void a_waker(void) {
  make(wakes_at_its_end, NULL);
  make(waits, NULL); /* which runs first */
}

/* Native threads are cancelled while they wait for work: their later threads run, and are not ended. */
static pthread_t native_of_run[8];
static void notes(void* index) {
  begin_thread(index);
  native_of_run[(long)index / RUN] = pthread_self();
  add(&ran);
}
static void is_not_cancelled(void* index) {
  pthread_testcancel();
  returns(index);
}
static void cancelled_while_idle(void) {
  int run;
  forget_all();
  CHECK(FORM(init)(natives, natives * RUN) == 0);
  while (made < natives * RUN) {
    make(notes, (void*)(long)made);
  }
  CHECK(FORM(start)() == 0);
  while (__atomic_load_n(&ran, __ATOMIC_SEQ_CST) < made) {
    usleep(1000);
  }
  let_others_fall_asleep();
  for (run = 0; run < natives; ++run) {
    CHECK(pthread_cancel(native_of_run[run]) == 0);
  }
  let_others_fall_asleep();
  while (made < 2 * natives * RUN) {
    make(is_not_cancelled, (void*)(long)made);
  }
  FORM(fini)();
  CHECK(ran == made && wakers_ran == wakers && natives_left == natives);
}

static void expect_all(void) {
  for (cancelled = 0; cancelled < 2; ++cancelled) {
    all_end(half_of_them);
    CHECK(left == natives * RUN / 2 && natives_left == natives);
    all_end(all_of_them);
    CHECK(left == natives * RUN && natives_left == natives);
    all_end(first_of_each);
    CHECK(left == natives && natives_left == natives);
    all_end(a_waker);
    CHECK(left == 1 && natives_left == 1);
  }
  cancelled_while_idle();
}
#else
static void leaves(void* unused) {
  begin_thread(unused);
  turn();
  end_native();
}
static void end_without_tables(void) {
  alarm(30);
  CHECK(FORM(init)(natives, 1) == 0);
  make(leaves, NULL);
  CHECK(FORM(start)() == 0);
  FORM(fini)();
}
static void expect_all(void) {
  for (cancelled = 0; cancelled < 2; ++cancelled) {
    CHECK_DIES(end_without_tables, SIGABRT, "cannot be unwound: a function on its stack has no unwind tables");
  }
}
#endif

int main(void) {
  alarm(100);
  CHECK(pthread_key_create(&at_end_of_native, count_native) == 0);
#ifdef SINGLE_THREAD
  natives = 1;
  expect_all();
#else
  for (natives = 1; natives <= 4; natives *= 2) {
    expect_all();
  }
#endif
  return 0;
}
