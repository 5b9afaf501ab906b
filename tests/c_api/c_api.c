/* The C API as a C99 program sees it. Compiled and linked by the C compiler, against the shared and the static library.
 */
#define _POSIX_C_SOURCE 200809L

#include "pirn/pirn.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures = 0;

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                             \
    }                                                                         \
  } while (0)

static void* number(intptr_t value) { return (void*)value; }
static intptr_t value_of(void* number_) { return (intptr_t)number_; }

/* Sends each number back plus the number behind `user`, until it gets 0. */
static void* adder(pirn_coroutine* self, void* first) {
  const intptr_t* const more = pirn_user(self);
  void* in = first;
  while (value_of(in) != 0) {
    CHECK(pirn_self() == self);
    CHECK(pirn_yield(self, number(value_of(in) + *more), &in) == 0);
  }
  return number(-*more);
}

static void values_travel(void) {
  intptr_t seven = 7;
  pirn_coroutine* co = NULL;
  void* out = NULL;
  CHECK(pirn_create(&co, NULL, adder, &seven) == 0);
  CHECK(!pirn_done(co));
  CHECK(pirn_user(co) == &seven);
  for (intptr_t i = 1; i <= 1000; ++i) {
    CHECK(pirn_resume(co, number(i), &out) == PIRN_YIELDED);
    CHECK(value_of(out) == i + 7);
    CHECK(pirn_self() == NULL);
  }
  CHECK(pirn_resume(co, number(5), NULL) == PIRN_YIELDED);
  CHECK(pirn_resume(co, NULL, &out) == PIRN_ENDED);
  CHECK(value_of(out) == -7);
  CHECK(pirn_done(co));
  CHECK(pirn_resume(co, NULL, &out) == -ESRCH);
  CHECK(pirn_destroy(co) == 0);
}

/* ---- stacks ---- */

static char own_memory[16384 + 5];

static void* deep(pirn_coroutine* self, void* first) {
  volatile char room[4096];
  (void)self;
  memset((char*)room, 1, sizeof room);
  return (const volatile char*)room >= own_memory && (const volatile char*)room < own_memory + sizeof own_memory ? first
                                                                                                                 : NULL;
}

static void stacks_are_used_again(void) {
  pirn_stack* stack = NULL;
  pirn_coroutine *co = NULL, *other = NULL;
  void* out = NULL;
  intptr_t one = 1;
  CHECK(pirn_stack_create(&stack, 30000) == 0);
  CHECK(pirn_stack_size(stack) >= 30000);
  for (int i = 0; i < 100; ++i) {
    CHECK(pirn_create(&co, stack, adder, &one) == 0);
    CHECK(pirn_create(&other, stack, adder, &one) == -EBUSY);
    CHECK(pirn_stack_destroy(stack) == -EBUSY);
    CHECK(pirn_resume(co, number(1), &out) == PIRN_YIELDED);
    CHECK(value_of(out) == 2);
    CHECK(pirn_destroy(co) == 0);
  }
  CHECK(pirn_stack_destroy(stack) == 0);

  CHECK(pirn_stack_create_in(&stack, own_memory + 3, sizeof own_memory - 5) == 0);
  CHECK(pirn_create(&co, stack, deep, NULL) == 0);
  CHECK(pirn_resume(co, number(3), &out) == PIRN_ENDED);
#if !defined(__SANITIZE_ADDRESS__) && !defined(PIRN_TEST_ASAN)
  CHECK(value_of(out) == 3);
#endif
  CHECK(pirn_destroy(co) == 0);
  CHECK(pirn_stack_destroy(stack) == 0);
}

/* ---- nesting, reset, self ---- */

static void* outer_body(pirn_coroutine* self, void* first) {
  intptr_t ten = 10;
  pirn_coroutine* inner = NULL;
  void* out = NULL;
  CHECK(pirn_create(&inner, NULL, adder, &ten) == 0);
  for (void* in = first;;) {
    CHECK(pirn_resume(inner, in, &out) == PIRN_YIELDED);
    CHECK(pirn_self() == self);
    CHECK(pirn_resume(self, NULL, NULL) == -EBUSY);
    CHECK(pirn_destroy(self) == -EBUSY);
    CHECK(pirn_reset(self, adder, NULL) == -EBUSY);
    CHECK(pirn_yield(inner, NULL, NULL) == -EPERM);
    if (value_of(in) == 3) {
      break;
    }
    CHECK(pirn_yield(self, out, &in) == 0);
  }
  CHECK(pirn_destroy(inner) == 0);
  return out;
}

static void they_nest_and_are_reset(void) {
  pirn_coroutine* co = NULL;
  void* out = NULL;
  intptr_t five = 5;
  CHECK(pirn_create(&co, NULL, outer_body, NULL) == 0);
  for (int round = 0; round < 3; ++round) {
    CHECK(pirn_resume(co, number(1), &out) == PIRN_YIELDED && value_of(out) == 11);
    CHECK(pirn_resume(co, number(2), &out) == PIRN_YIELDED && value_of(out) == 12);
    CHECK(pirn_resume(co, number(3), &out) == PIRN_ENDED && value_of(out) == 13);
    CHECK(pirn_reset(co, outer_body, NULL) == 0);
    CHECK(!pirn_done(co));
  }
  CHECK(pirn_reset(co, adder, &five) == 0);
  CHECK(pirn_resume(co, number(1), &out) == PIRN_YIELDED && value_of(out) == 6);
  CHECK(pirn_reset(co, adder, &five) == 0);
  CHECK(pirn_resume(co, number(2), &out) == PIRN_YIELDED && value_of(out) == 7);
  pirn_set_user(co, &failures);
  CHECK(pirn_user(co) == &failures);
  CHECK(pirn_destroy(co) == 0);
}

/* ---- destroying a suspended one ---- */

static int cleaned = 0;
static void clean(int* which) { cleaned = cleaned * 10 + *which; }

static void* holds_things(pirn_coroutine* self, void* first) {
  __attribute__((cleanup(clean))) int outer = 2;
  {
    __attribute__((cleanup(clean))) int inner = 1;
    (void)outer;
    (void)inner;
    pirn_yield(self, first, NULL);
  }
  cleaned = -1; /* not reached */
  return NULL;
}

static void destroying_unwinds(void) {
  pirn_coroutine* co = NULL;
  cleaned = 0;
  CHECK(pirn_create(&co, NULL, holds_things, NULL) == 0);
  CHECK(pirn_destroy(co) == 0); /* never began */
  CHECK(cleaned == 0);
  CHECK(pirn_create(&co, NULL, holds_things, NULL) == 0);
  CHECK(pirn_resume(co, NULL, NULL) == PIRN_YIELDED);
  CHECK(pirn_destroy(co) == 0);
  CHECK(cleaned == 12);
}

/* ---- the end of a thread in a body ---- */

#if !defined(PIRN_TEST_TSAN) /* which ends a process if a thread ends on another stack */

static int is_cancelled = 0;
static intptr_t result_of_thread = 0;

static void clean_twice(int* which) {
  clean(which);
  clean(which);
}
static void release(pirn_coroutine** co) {
  CHECK(pirn_done(*co));
  CHECK(pirn_resume(*co, NULL, NULL) == -ESRCH);
  CHECK(pirn_destroy(*co) == 0);
}

static void end_thread(void) {
  if (!is_cancelled) {
    pthread_exit(&result_of_thread);
  }
  pthread_cancel(pthread_self());
  for (;;) {
    sleep(1);
  }
}

static void* ends_thread(pirn_coroutine* self, void* first) {
  __attribute__((cleanup(clean))) int its = 1;
  (void)its;
  pirn_yield(self, first, NULL);
  end_thread();
  return NULL;
}

static void* resumes_another(pirn_coroutine* self, void* first) {
  __attribute__((cleanup(clean))) int its = 2;
  __attribute__((cleanup(release))) pirn_coroutine* inner = NULL;
  (void)self;
  (void)its;
  CHECK(pirn_create(&inner, NULL, ends_thread, NULL) == 0);
  CHECK(pirn_resume(inner, first, NULL) == PIRN_YIELDED);
  pirn_resume(inner, first, NULL);
  cleaned = -1; /* not reached */
  return NULL;
}

static void* resumes_two(void* unused) {
  __attribute__((cleanup(clean))) int own = 3;
  __attribute__((cleanup(release))) pirn_coroutine* outer = NULL;
  (void)own;
  CHECK(pirn_create(&outer, NULL, resumes_another, NULL) == 0);
  pirn_resume(outer, unused, NULL);
  cleaned = -1; /* not reached */
  return NULL;
}

/* clang's code ends the program where an unwind leaves a variable with a cleanup attribute. */
#if !defined(__clang__)
static void end_thread_by(int* unused) {
  clean(unused);
  end_thread();
}
static void* ends_thread_when_destroyed(pirn_coroutine* self, void* first) {
  __attribute__((cleanup(clean))) int outer = 2;
  __attribute__((cleanup(end_thread_by))) int inner = 1;
  (void)outer;
  (void)inner;
  pirn_yield(self, first, NULL);
  return NULL;
}

static pirn_stack* stack_of_destroyed = NULL;

static void* destroys(void* unused) {
  __attribute__((cleanup(clean))) int own = 3;
  pirn_coroutine* co = NULL;
  (void)own;
  CHECK(pirn_create(&co, stack_of_destroyed, ends_thread_when_destroyed, NULL) == 0);
  CHECK(pirn_resume(co, unused, NULL) == PIRN_YIELDED);
  pirn_destroy(co);
  cleaned = -1; /* not reached */
  return NULL;
}

static void* resets(void* unused) {
  __attribute__((cleanup(clean))) int own = 3;
  __attribute__((cleanup(release))) pirn_coroutine* co = NULL;
  (void)own;
  CHECK(pirn_create(&co, stack_of_destroyed, ends_thread_when_destroyed, NULL) == 0);
  CHECK(pirn_resume(co, unused, NULL) == PIRN_YIELDED);
  pirn_reset(co, resumes_another, NULL);
  cleaned = -1; /* not reached */
  return NULL;
}
#endif

/* A thread whose unwind may be the first of the process, on the smallest stack. */
static void* resumes_on_the_least_stack(void* unused) {
  __attribute__((cleanup(clean_twice))) int own = 3;
  __attribute__((cleanup(release))) pirn_coroutine* co = NULL;
  pirn_stack* stack = NULL;
  (void)own;
  CHECK(pirn_stack_create_in(&stack, own_memory, PIRN_STACK_MIN) == 0);
  CHECK(pirn_create(&co, stack, ends_thread, NULL) == 0);
  CHECK(pirn_resume(co, unused, NULL) == PIRN_YIELDED);
  pirn_resume(co, unused, NULL);
  cleaned = -1; /* not reached */
  return NULL;
}

static void ends_in(void* (*function)(void*), int cleaned_expected) {
  for (is_cancelled = 0; is_cancelled < 2; ++is_cancelled) {
    pthread_t thread;
    void* result = NULL;
    cleaned = 0;
    CHECK(pthread_create(&thread, NULL, function, NULL) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == (is_cancelled ? PTHREAD_CANCELED : (void*)&result_of_thread));
    if (cleaned != cleaned_expected) {
      fprintf(stderr, "cleaned %d\n", cleaned);
    }
    CHECK(cleaned == cleaned_expected);
  }
}

static void the_end_of_a_thread_unwinds_its_resumers(void) {
  ends_in(resumes_on_the_least_stack, 133);
  ends_in(resumes_two, 123);
#if !defined(__clang__)
  CHECK(pirn_stack_create(&stack_of_destroyed, 0) == 0);
  ends_in(destroys, 123);
  ends_in(resets, 123);
  CHECK(pirn_stack_destroy(stack_of_destroyed) == 0); /* each has released it */
#endif
}

#else
static void the_end_of_a_thread_unwinds_its_resumers(void) {}
#endif

/* ---- variables ---- */

static pirn_local name_of, count_of, ends_late;
static char end_log[64];

static void log_end(void* value) {
  strncat(end_log, value, sizeof end_log - strlen(end_log) - 1);
  CHECK(pirn_self() != NULL);
  CHECK(pirn_yield(pirn_self(), NULL, NULL) == -EPERM);
}
/* The latest variable, so the first that ends: finds an older one, and sets itself once more. */
static void log_end_again(void* value) {
  CHECK(strcmp(pirn_local_get(name_of), "one") == 0);
  log_end(value);
  if (strcmp(value, "<") == 0) {
    CHECK(pirn_local_set(ends_late, ">") == 0);
  }
}

static void* inner_has_other_values(pirn_coroutine* self, void* first) {
  (void)self;
  CHECK(pirn_local_get(name_of) == NULL);
  CHECK(pirn_local_set(name_of, first) == 0);
  CHECK(pirn_local_get(name_of) == first);
  return NULL;
}
static void* has_variables(pirn_coroutine* self, void* first) {
  pirn_coroutine* inner = NULL;
  CHECK(pirn_local_get(name_of) == NULL && pirn_local_get(count_of) == NULL);
  CHECK(pirn_local_set(count_of, NULL) == 0);
  CHECK(pirn_local_set(name_of, first) == 0);
  CHECK(pirn_local_set(count_of, number(1)) == 0);
  CHECK(pirn_create(&inner, NULL, inner_has_other_values, NULL) == 0);
  CHECK(pirn_resume(inner, "inner", NULL) == PIRN_ENDED);
  CHECK(pirn_destroy(inner) == 0);
  while (value_of(pirn_local_get(count_of)) < 5) {
    CHECK(pirn_yield(self, pirn_local_get(name_of), NULL) == 0);
    CHECK(pirn_local_set(count_of, number(value_of(pirn_local_get(count_of)) + 1)) == 0);
  }
  CHECK(pirn_local_set(ends_late, "<") == 0);
  return pirn_local_get(name_of);
}

static void each_coroutine_has_its_variables(void) {
  pirn_coroutine* one = NULL;
  pirn_coroutine* two = NULL;
  pirn_local last = 0;
  void* out = NULL;
  CHECK(pirn_local_create(NULL, NULL) == -EINVAL);
  CHECK(pirn_local_create(&name_of, log_end) == 0);
  CHECK(pirn_local_create(&count_of, NULL) == 0);
  CHECK(pirn_local_create(&ends_late, log_end_again) == 0);
  CHECK(name_of >= 0 && name_of != count_of && count_of != ends_late);
  CHECK(pirn_local_get(name_of) == NULL);
  CHECK(pirn_local_set(name_of, "outside") == -EPERM);
  CHECK(pirn_create(&one, NULL, has_variables, NULL) == 0);
  CHECK(pirn_create(&two, NULL, has_variables, NULL) == 0);
  for (int i = 0; i < 4; ++i) {
    CHECK(pirn_resume(one, "one", &out) == PIRN_YIELDED && strcmp(out, "one") == 0);
    CHECK(pirn_resume(two, "two", &out) == PIRN_YIELDED && strcmp(out, "two") == 0);
  }
  CHECK(strcmp(end_log, "innerinner") == 0);
  end_log[0] = 0;
  CHECK(pirn_resume(one, NULL, &out) == PIRN_ENDED && strcmp(out, "one") == 0);
  CHECK(strcmp(end_log, "<>one") == 0);
  CHECK(pirn_reset(two, has_variables, NULL) == 0); /* unwinds, after which the values end */
  CHECK(strcmp(end_log, "<>onetwo") == 0);
  CHECK(pirn_resume(two, "anew", &out) == PIRN_YIELDED && strcmp(out, "anew") == 0);
  CHECK(pirn_destroy(two) == 0);
  CHECK(strcmp(end_log, "<>onetwoinneranew") == 0);
  CHECK(pirn_destroy(one) == 0);
  CHECK(strcmp(end_log, "<>onetwoinneranew") == 0);
  CHECK(pirn_local_get(-1) == NULL && pirn_local_get(PIRN_LOCAL_MAX) == NULL);
  CHECK(pirn_local_set(-1, "") == -EINVAL && pirn_local_set(PIRN_LOCAL_MAX, "") == -EINVAL);
  CHECK(pirn_local_set(ends_late + 1, "") == -EINVAL);
  for (int i = 3; i < PIRN_LOCAL_MAX; ++i) {
    CHECK(pirn_local_create(&last, NULL) == 0);
  }
  CHECK(last == PIRN_LOCAL_MAX - 1);
  CHECK(pirn_local_create(&last, NULL) == -EAGAIN);
}

/* ---- misuse ---- */

static void misuse_is_an_error(void) {
  pirn_coroutine* co = NULL;
  pirn_stack* stack = NULL;
  char little[100];
  errno = 77;
  CHECK(pirn_create(NULL, NULL, adder, NULL) == -EINVAL);
  CHECK(pirn_create(&co, NULL, NULL, NULL) == -EINVAL);
  CHECK(pirn_resume(NULL, NULL, NULL) == -EINVAL);
  CHECK(pirn_yield(NULL, NULL, NULL) == -EINVAL);
  CHECK(pirn_reset(NULL, adder, NULL) == -EINVAL);
  CHECK(pirn_stack_create(NULL, 0) == -EINVAL);
  CHECK(pirn_stack_create(&stack, SIZE_MAX) == -EINVAL);
  if (sizeof(void*) > 4) {
    CHECK(pirn_stack_create(&stack, SIZE_MAX / 8) == -ENOMEM);
  }
  CHECK(pirn_stack_create_in(&stack, little, sizeof little) == -EINVAL);
  CHECK(pirn_stack_create_in(&stack, own_memory, PIRN_STACK_MIN - 1) == -EINVAL);
  CHECK(pirn_stack_create_in(&stack, NULL, PIRN_STACK_MIN) == -EINVAL);
  CHECK(pirn_stack_create(&stack, 1) == 0);
  CHECK(pirn_stack_size(stack) >= PIRN_STACK_MIN);
  CHECK(pirn_stack_destroy(stack) == 0);
  CHECK(pirn_destroy(NULL) == 0);
  CHECK(pirn_stack_destroy(NULL) == 0);
  CHECK(pirn_stack_size(NULL) == 0);
  CHECK(pirn_done(NULL) == 1);
  CHECK(pirn_self() == NULL);
  CHECK(pirn_create(&co, NULL, adder, NULL) == 0);
  CHECK(pirn_yield(co, NULL, NULL) == -EPERM);
  CHECK(pirn_reset(co, NULL, NULL) == -EINVAL);
  CHECK(pirn_destroy(co) == 0);
  CHECK(errno == 77);
}

int main(void) {
  the_end_of_a_thread_unwinds_its_resumers(); /* first: the first unwind needs the most stack */
  values_travel();
  stacks_are_used_again();
  they_nest_and_are_reset();
  destroying_unwinds();
  each_coroutine_has_its_variables();
  misuse_is_an_error();
  if (failures != 0) {
    fprintf(stderr, "%d checks failed\n", failures);
    return EXIT_FAILURE;
  }
  puts("as documented");
  return EXIT_SUCCESS;
}
