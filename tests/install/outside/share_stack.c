/* Two coroutines of an installed aco.h on one share stack, in C. */
#include <aco.h>

static void add(void) {
  int own = 0;
  for (;;) {
    *(int*)aco_get_arg() += ++own;
    aco_yield();
  }
}

int main(void) {
  int sum = 0;
  aco_t *main_co, *first, *second;
  aco_share_stack_t* stack;
  aco_thread_init(NULL);
  main_co = aco_create(NULL, NULL, 0, NULL, NULL);
  stack = aco_share_stack_new(0);
  first = aco_create(main_co, stack, 0, add, &sum);
  second = aco_create(main_co, stack, 0, add, &sum);
  aco_resume(first);
  aco_resume(second);
  aco_resume(first);
  aco_destroy(first);
  aco_destroy(second);
  aco_share_stack_destroy(stack);
  aco_destroy(main_co);
  return sum == 4 ? 0 : 1;
}
