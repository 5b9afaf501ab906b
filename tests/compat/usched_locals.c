/* usched.h: variables of which each thread has its own value. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "usched.h"

/* ThreadSanitizer takes the end of a native thread, from one of usched, for that of another thread. */
#if defined(__SANITIZE_THREAD__)
#define NO_PTHREAD_EXIT
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NO_PTHREAD_EXIT
#endif
#endif

enum { MANY = 300 };

/* A scheduler of the user: the ready threads, in order of arrival. */
static struct usched dispatcher;
static struct ustack* ready[MANY + 1];
static unsigned first_ready;
static unsigned last_ready;
static void push(struct ustack* u) { ready[last_ready++ % (MANY + 1)] = u; }
static struct ustack* next_ready(struct usched* of) {
  (void)of;
  return first_ready == last_ready ? NULL : ready[first_ready++ % (MANY + 1)];
}
static void* allocate(struct usched* of, int size) {
  (void)of;
  return malloc((size_t)size);
}
static void give_back(struct usched* of, void* memory, int size) {
  (void)of;
  (void)size;
  free(memory);
}

static struct ustack threads[MANY];
static ustack_local variable;
static ustack_local other;
static long ended_sum;
static int ended_count;
static void note_end(void* value) {
  ++ended_count;
  ended_sum += (long)value;
}

static void begin(int index, void (*f)(void*)) {
  free(threads[index].u_stack);
  ustack_init(&threads[index], &dispatcher, f, (void*)(long)(index + 1), NULL, 0);
  push(&threads[index]);
}
static void turn(void) {
  push(ustack_self());
  ustack_block();
}
static void keeps_its_own(void* mine) {
  CHECK(ustack_local_get(variable) == NULL && ustack_local_get(other) == NULL);
  CHECK(ustack_local_set(variable, mine) == 0);
  turn();
  CHECK(ustack_local_get(variable) == mine && ustack_local_get(other) == NULL);
  CHECK(ustack_local_set(other, &threads) == 0); /* has no function for its end */
  turn();
  CHECK(ustack_local_get(variable) == mine && ustack_local_get(other) == &threads);
  if ((long)mine % 2 == 0) {
    ustack_abort();
  }
}
static void has_none(void* unused) {
  (void)unused;
  CHECK(ustack_local_get(variable) == NULL);
}
static void sets_nothing(void* unused) {
  (void)unused;
  CHECK(ustack_local_set(1024, NULL) == -EINVAL && ustack_local_set(-1, NULL) == -EINVAL);
  CHECK(ustack_local_get(1024) == NULL && ustack_local_get(-1) == NULL);
}
static void blocks_for_good(void* mine) {
  CHECK(ustack_local_set(variable, mine) == 0);
  ustack_block();
  CHECK(0);
}
#ifndef NO_PTHREAD_EXIT
static void ends_native(void* mine) {
  CHECK(ustack_local_set(variable, mine) == 0);
  pthread_exit(NULL);
}
static void* run_until_the_native_thread_ends(void* unused) {
  begin(0, ends_native);
  usched_run(&dispatcher);
  CHECK(0);
  return unused;
}
#endif
static void get_outside(void) { ustack_local_get(variable); }

int main(void) {
  int i;
  dispatcher.s_next = next_ready;
  dispatcher.s_alloc = allocate;
  dispatcher.s_free = give_back;
  variable = ustack_local_create(note_end);
  other = ustack_local_create(NULL);
  CHECK(variable >= 0 && other >= 0);
  for (i = 0; i < MANY; ++i) {
    begin(i, keeps_its_own);
  }
  usched_run(&dispatcher);
  CHECK(ended_count == MANY && ended_sum == MANY * (MANY + 1L) / 2);
  begin(0, has_none);
  begin(1, sets_nothing);
  begin(2, blocks_for_good);
  usched_run(&dispatcher);
  CHECK(ended_count == MANY);
  begin(2, has_none); /* whose memory is that of one that has not ended */
  CHECK(ended_count == MANY + 1);
  usched_run(&dispatcher);
#ifndef NO_PTHREAD_EXIT
  {
    pthread_t native;
    dispatcher.s_anchor = NULL; /* no thread is blocked */
    CHECK(pthread_create(&native, NULL, run_until_the_native_thread_ends, NULL) == 0);
    CHECK(pthread_join(native, NULL) == 0);
    CHECK(ended_count == MANY + 2);
  }
#endif
  CHECK_DIES(get_outside, SIGABRT, "outside of a thread");
  while (ustack_local_create(NULL) >= 0) {
  }
  CHECK(ustack_local_create(NULL) == -EAGAIN);
  for (i = 0; i < MANY; ++i) {
    free(threads[i].u_stack);
  }
  return 0;
}
