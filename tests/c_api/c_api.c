/* The C API as a C99 program sees it. Compiled and linked by the C compiler, against the shared and the static library.
 */
#include "pirn/pirn.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Sends each number back plus what is behind `user`, until it gets 0. */
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
  values_travel();
  stacks_are_used_again();
  they_nest_and_are_reset();
  destroying_unwinds();
  misuse_is_an_error();
  if (failures != 0) {
    fprintf(stderr, "%d checks failed\n", failures);
    return EXIT_FAILURE;
  }
  puts("as documented");
  return EXIT_SUCCESS;
}
