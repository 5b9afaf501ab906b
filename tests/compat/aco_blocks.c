/* Many coroutines with images of all sizes are made, resumed and destroyed in any order: none gets the image of
 * another, and all memory is given back. */
#include <alloca.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aco.h"
#include "check.h"

static unsigned next_random(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

/* Bytes that the program holds; what a sanitizer's malloc holds is not known. */
static size_t held(void) {
#if defined(PIRN_TEST_SANITIZED)
  return 0;
#else
  struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
#endif
}

enum { most = 700, largest = 6000 };
static aco_t* all[most];
static unsigned sizes[most]; /* bytes that a coroutine has on its stack when it yields next */
static unsigned turns[most];

/* Yields once with so many bytes on the stack, which nobody changes meanwhile. */
static __attribute__((noinline)) void yield_below(unsigned bytes, unsigned char mine) {
  unsigned char* const on_stack = (unsigned char*)alloca(bytes);
  unsigned i;
  memset(on_stack, mine, bytes);
  __asm__ volatile("" : : "r"(on_stack) : "memory");
  aco_yield();
  for (i = 0; i < bytes; ++i) {
    CHECK(on_stack[i] == mine);
  }
}

static void body(void) {
  const uintptr_t index = (uintptr_t)aco_get_arg();
  for (;;) {
    ++turns[index];
    yield_below(sizes[index], (unsigned char)(3 * index + turns[index]));
  }
}

static void destroy(unsigned i) {
  aco_destroy(all[i]);
  all[i] = NULL;
}

static void test_any_order(aco_t* of_thread, aco_share_stack_t* shared, unsigned of_one_size) {
  unsigned expected[most] = {0};
  unsigned random = 7;
  unsigned step;
  unsigned i;
  for (step = 0; step < 20000; ++step) {
    i = next_random(&random) % most;
    if (all[i] == NULL) {
      all[i] = aco_create(of_thread, shared, 0, body, (void*)(uintptr_t)i);
      turns[i] = expected[i] = 0;
    } else if (next_random(&random) % 8 == 0) {
      destroy(i);
      continue;
    }
    sizes[i] = of_one_size != 0 ? of_one_size : 1 + next_random(&random) % largest;
    aco_resume(all[i]);
    CHECK(turns[i] == ++expected[i]);
  }
}

static void destroy_all_but(unsigned kept) {
  unsigned i;
  for (i = 0; i < most; ++i) {
    if (all[i] != NULL && i != kept) {
      destroy(i);
    }
  }
}

/* A coroutine that is made among many and is the only one in the end. */
static void test_memory(aco_t* of_thread, aco_share_stack_t* shared) {
  const size_t before = held();
  size_t full;
  unsigned i;
  for (i = 0; i < most; ++i) {
    all[i] = aco_create(of_thread, shared, 0, body, (void*)(uintptr_t)i);
    sizes[i] = 1000;
    turns[i] = 0;
    aco_resume(all[i]);
  }
  full = held();
  CHECK(full == 0 || full - before > (most - 1) * 1000u);
  CHECK(full == 0 || full - before < most * 1400u + 200000u);
  destroy_all_but(most / 2);
  CHECK(full == 0 || held() - before < 300000u); /* two chunks at most */
  aco_resume(all[most / 2]);
  destroy(most / 2);
  CHECK(full == 0 || held() < before + 120000u); /* the last chunk */
}

int main(void) {
  size_t before = 0;
  int twice;
  for (twice = 0; twice < 2; ++twice) {
    aco_t* main_co;
    aco_share_stack_t* shared;
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    shared = aco_share_stack_new(0);
    test_any_order(main_co, shared, 0);
    destroy_all_but(most);
    test_any_order(main_co, shared, 500);
    destroy_all_but(most);
    test_memory(main_co, shared);
    test_any_order(main_co, shared, 0);
    aco_share_stack_destroy(shared); /* before its coroutines */
    destroy_all_but(most);
    aco_destroy(main_co);
    CHECK(twice == 0 || held() <= before + 16000); /* malloc counts small blocks that it keeps at hand */
    before = held();
  }
  return 0;
}
