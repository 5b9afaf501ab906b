/* Coroutines are made and destroyed in any order: none gets the memory of another, and all memory is given back. */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

#include "aco.h"
#include "check.h"

static unsigned next_random(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static void count_turns(void) {
  for (;;) {
    ++*(int*)aco_get_arg();
    aco_yield();
  }
}

/* Bytes that the program holds; what a sanitizer's malloc holds is not known. */
static size_t held(void) {
#if defined(PIRN_TEST_SANITIZED)
  return 0;
#else
  return mallinfo2().uordblks;
#endif
}

enum { most = 1000 };
static aco_t* all[most];
static int turns[most];

static void make(aco_t* of_thread, aco_share_stack_t* shared, unsigned i) {
  turns[i] = 0;
  all[i] = aco_create(of_thread, shared, 0, count_turns, &turns[i]);
}
static void destroy(unsigned i) {
  aco_destroy(all[i]);
  all[i] = NULL;
}

static void test_any_order(aco_t* of_thread, aco_share_stack_t* shared) {
  int expected[most] = {0};
  unsigned random = 1;
  unsigned i;
  int step;
  for (step = 0; step < 30000; ++step) {
    i = next_random(&random) % most;
    if (all[i] == NULL) {
      make(of_thread, shared, i);
      expected[i] = 0;
    } else if (next_random(&random) % 3 == 0) {
      destroy(i);
      continue;
    }
    aco_resume(all[i]);
    CHECK(turns[i] == ++expected[i] && all[i]->arg == &turns[i] && all[i]->share_stack == shared);
  }
  for (i = 0; i < most; ++i) {
    if (all[i] != NULL) {
      destroy(i);
    }
  }
}

/* As many again take the places of those that are gone. */
static void test_places_are_used_again(aco_t* of_thread, aco_share_stack_t* shared) {
  size_t first = 0;
  size_t one_left;
  int round;
  unsigned i;
  for (round = 0; round < 40; ++round) {
    for (i = 0; i < most; ++i) {
      make(of_thread, shared, i);
    }
    if (round == 0) {
      first = held();
    }
    CHECK(held() <= first + 40000);
    for (i = 0; i + 1 < most; ++i) {
      destroy(round % 2 == 0 ? i : most - 2 - i);
    }
    one_left = held();
    CHECK(first == 0 || first - one_left >= (most - 300) * sizeof(aco_t)); /* of one size with the last, at most */
    destroy(most - 1);
  }
}

int main(void) {
  size_t before;
  int twice;
  for (twice = 0; twice < 2; ++twice) {
    aco_t* main_co;
    aco_share_stack_t* shared;
    before = held();
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    shared = aco_share_stack_new(0);
    test_any_order(main_co, shared);
    test_places_are_used_again(main_co, shared);
    aco_share_stack_destroy(shared);
    /* The share stack goes first. */
    shared = aco_share_stack_new(0);
    make(main_co, shared, 0);
    make(main_co, shared, 1);
    aco_share_stack_destroy(shared);
    destroy(1);
    destroy(0);
    aco_destroy(main_co);
    CHECK(twice == 0 || held() <= before + 16000); /* malloc counts small blocks that it keeps at hand */
  }
  return 0;
}
