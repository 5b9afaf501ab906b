/* aco.h: variables of which each coroutine has its own value. */
#include "aco.h"
#include "aco_assert_override.h"
#include "check.h"

enum { MANY = 1000 };

static aco_t* main_co;
static aco_local_t first;
static aco_local_t second;

/* The values that have ended, in their order. */
static long ended[2 * MANY];
static int ended_count;
static void note_end(void* value) { ended[ended_count++] = (long)value; }
static void note_end_of_second(void* value) {
  note_end(value);
  if ((long)value == 20) {
    CHECK(aco_local_get(first) == (void*)10L); /* ends later */
    CHECK(aco_local_get(second) == NULL);      /* has ended */
    aco_local_set(second, (void*)21L);         /* ends too */
  }
}

static void keeps_its_own(void) {
  const long mine = (long)aco_get_arg();
  CHECK(aco_local_get(first) == NULL);
  aco_local_set(first, (void*)mine);
  aco_yield();
  CHECK(aco_local_get(first) == (void*)mine);
  aco_local_set(first, (void*)(mine + 1));
  aco_yield();
  CHECK(aco_local_get(first) == (void*)(mine + 1));
  aco_exit();
}
static void each_of_many_has_its_own(void) {
  static aco_t* all[MANY];
  aco_share_stack_t* const stack = aco_share_stack_new(0);
  int round;
  int i;
  ended_count = 0;
  CHECK(aco_local_get(first) == NULL); /* no coroutine has run yet, and so the main coroutine does not count */
  for (i = 0; i < MANY; ++i) {
    all[i] = aco_create(main_co, stack, 0, keeps_its_own, (void*)(long)(2 * i + 1));
  }
  for (round = 0; round < 2; ++round) {
    for (i = 0; i < MANY; ++i) {
      aco_resume(all[i]);
    }
    aco_local_set(first, (void*)7L);
  }
  CHECK(ended_count == 0 && aco_local_get(first) == (void*)7L);
  /* Every other one ends, and the rest still find theirs. */
  for (i = 0; i < MANY; i += 2) {
    aco_resume(all[i]);
    CHECK(ended[ended_count - 1] == 2 * i + 2);
  }
  for (i = 1; i < MANY; i += 2) {
    aco_resume(all[i]);
  }
  CHECK(ended_count == MANY);
  for (i = 0; i < MANY; ++i) {
    aco_destroy(all[i]);
  }
  CHECK(ended_count == MANY);
  aco_share_stack_destroy(stack);
  aco_local_set(first, NULL);
}

static void has_two(void) {
  aco_local_set(first, (void*)10L);
  aco_local_set(second, (void*)20L);
  if (aco_get_arg() != NULL) {
    aco_exit();
  }
  aco_yield();
  aco_exit();
}
static void has_none(void) {
  CHECK(aco_local_get(first) == NULL && aco_local_get(second) == NULL);
  aco_exit();
}
static void values_end_the_latest_variable_first(void) {
  aco_share_stack_t* const stack = aco_share_stack_new(0);
  aco_t* const co = aco_create(main_co, stack, 0, has_two, &ended_count);
  ended_count = 0;
  aco_resume(co);
  CHECK(ended_count == 3 && ended[0] == 20 && ended[1] == 21 && ended[2] == 10);
  aco_destroy(co);
  aco_share_stack_destroy(stack);
}
static void ends_outside(void* value) {
  note_end(value);
  CHECK(aco_co() == main_co);
}
static void values_end_by_a_reset_and_by_destruction(void) {
  aco_share_stack_t* const stack = aco_share_stack_new(0);
  aco_t* const co = aco_create(main_co, stack, 0, keeps_its_own, (void*)30L);
  ended_count = 0;
  aco_resume(co);
  aco_reset(co);
  CHECK(ended_count == 1 && ended[0] == 30);
  co->fp = has_none;
  aco_resume(co);
  aco_reset(co);
  co->fp = keeps_its_own;
  aco_resume(co);
  aco_destroy(co);
  CHECK(ended_count == 2 && ended[1] == 30);
  aco_share_stack_destroy(stack);
}

static void set_outside(void) {
  aco_destroy(main_co);
  CHECK(aco_local_get(first) == NULL);
  aco_local_set(first, NULL);
}
static void set_nothing(void) { aco_local_set(1024, NULL); }
static void make_too_many(void) {
  int i;
  for (i = 0; i < 1025; ++i) {
    aco_local_new(NULL);
  }
}

int main(void) {
  aco_local_t third;
  aco_thread_init(NULL);
  main_co = aco_create(NULL, NULL, 0, NULL, NULL);
  first = aco_local_new(note_end);
  second = aco_local_new(note_end_of_second);
  third = aco_local_new(ends_outside);
  each_of_many_has_its_own();
  values_end_the_latest_variable_first();
  values_end_by_a_reset_and_by_destruction();
  CHECK_DIES(set_outside, SIGABRT, "outside of a coroutine");
  CHECK_DIES(set_nothing, SIGABRT, "no variable");
  CHECK_DIES(make_too_many, SIGABRT, "1024 variables");
  /* A main coroutine has values too. */
  ended_count = 0;
  aco_local_set(third, (void*)40L);
  CHECK(aco_local_get(third) == (void*)40L);
  aco_destroy(main_co);
  CHECK(ended_count == 1 && ended[0] == 40);
  return 0;
}
