/* The inlined switch of an installed pirn, in C. */
#include <pirn/inline.h>

static pirn_context here, there;

static void add(uintptr_t first, uintptr_t second) {
  uintptr_t sum = 0;
  for (;;) {
    sum += first;
    first = sum;
    pirn_switch(&there, &here, &first, &second);
  }
}

int main(void) {
  pirn_stack* stack;
  void* top;
  uintptr_t i, number = 0, unused = 0;
  if (pirn_stack_create(&stack, 0) != 0 || pirn_stack_lend(stack, &top) != 0) {
    return 1;
  }
  pirn_context_prepare(&there, top, add);
  for (i = 1; i <= 3; ++i) {
    number = i;
    pirn_switch(&here, &there, &number, &unused);
  }
  return pirn_stack_take_back(stack) == 0 && pirn_stack_destroy(stack) == 0 && number == 6 ? 0 : 2;
}
