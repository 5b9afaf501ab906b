#include "pirn-c-inline.h"

#include "pirn/inline.h"

static pirn_context here, there;

static void other(uintptr_t first, uintptr_t second) {
  for (uintptr_t others = 1;; ++others) {
    first = others;
    pirn_switch(&there, &here, &first, &second);
  }
}

int begin_in_c(size_t stack_size) {
  pirn_stack* stack = NULL;
  void* top = NULL;
  int problem = pirn_stack_create(&stack, stack_size);
  if (problem == 0) {
    problem = pirn_stack_lend(stack, &top);
  }
  if (problem == 0) {
    pirn_context_prepare(&there, top, other);
  }
  return problem;
}

__attribute__((noinline)) uint64_t switch_in_c(uint64_t sent, uint64_t turns) {
  uintptr_t number = sent, unused = 0;
  for (uint64_t i = 0; i < turns; ++i) {
    pirn_switch(&here, &there, &number, &unused);
  }
  return number;
}
