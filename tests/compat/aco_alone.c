/* aco.h with ACO_USE_VALGRIND: one coroutine on each share stack, about which valgrind reports nothing. */
#include "aco.h"

#include "check.h"

static void count(void) {
  int* const number = (int*)aco_get_arg();
  while (*number < 1000) {
    char* const heap = (char*)malloc(10);
    heap[9] = (char)*number;
    aco_yield();
    *number += 1 + 0 * heap[9];
    free(heap);
  }
  aco_exit();
}

int main(void) {
  enum { coroutines = 4 };
  int numbers[coroutines] = {0};
  aco_t* co[coroutines];
  aco_t* main_co;
  int ended, i;
  aco_thread_init(NULL);
  main_co = aco_create(NULL, NULL, 0, NULL, NULL);
  for (i = 0; i < coroutines; ++i) {
    co[i] = aco_create(main_co, aco_share_stack_new2(0, (char)(i % 2)), 0, count, &numbers[i]);
  }
  do {
    ended = 0;
    for (i = 0; i < coroutines; ++i) {
      if (!co[i]->is_end) {
        aco_resume(co[i]);
      }
      ended += co[i]->is_end;
    }
  } while (ended < coroutines);
  for (i = 0; i < coroutines; ++i) {
    aco_share_stack_t* const stack = co[i]->share_stack;
    CHECK(numbers[i] == 1000);
    aco_destroy(co[i]);
    aco_share_stack_destroy(stack);
  }
  aco_destroy(main_co);
  return 0;
}
