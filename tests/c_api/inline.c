/* pirn/inline.h: what a switch carries and what it keeps, in C11 and in C++. inline_test.py builds it by each compiler
 * at several levels. */
#include "inline_there.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int failures = 0;

static void expect(int right, const char* what) {
  printf("%s %s\n", right ? "ok" : "FAILED", what);
  failures += !right;
}

pirn_context here, there;
static pirn_stack* stack;

static void begin(pirn_entry entry) {
  void* top = NULL;
  if (pirn_stack_lend(stack, &top) != 0) {
    abort();
  }
  pirn_context_prepare(&there, top, entry);
}
static void end(void) {
  if (pirn_stack_take_back(stack) != 0) {
    abort();
  }
}

/* ---- words ---- */

static void words(void) {
  uintptr_t first = 10, second = 20;
  begin(echo);
  pirn_switch(&here, &there, &first, &second);
  expect(first == 22 && second == 11, "both words arrive at entry and on return");
  pirn_switch(&here, &there, &first, &second);
  expect(first == 13 && second == 23, "both words arrive later");
  end();
  first = 3;
  second = 4;
  pirn_switch(&here, &here, &first, &second);
  expect(first == 3 && second == 4, "a switch to itself returns at once");
}

/* ---- live values ---- */

static NOINLINE int keep_here(void) {
  uintptr_t first = 0, second = 0;
  int kept = 1, turn;
  for (turn = 0; turn < 3; ++turn) {
    KEEP_LIVE_VALUES(1, pirn_switch(&here, &there, &first, &second));
  }
  return kept;
}

static void live_values(void) {
  int i;
  for (i = 0; i < 16; ++i) {
    numbers[i] = (uintptr_t)i + 1;
  }
  for (i = 0; i < 12; ++i) {
    reals[i] = i + 1.5;
  }
  begin(keep_there);
  expect(keep_here(), "live values of the resumer");
  expect(kept_there, "live values of the context");
  end();
}

/* ---- frames ---- */

/* A leaf: its variables may lie below its stack pointer. */
static NOINLINE int leaf(void) {
  volatile uintptr_t room[12];
  uintptr_t first = 0, second = 0, wrong = 0;
  int i;
  for (i = 0; i < 12; ++i) {
    room[i] = (uintptr_t)i;
  }
  pirn_switch(&here, &there, &first, &second);
  for (i = 0; i < 12; ++i) {
    wrong += room[i] != (uintptr_t)i;
  }
  return wrong == 0;
}

static NOINLINE int over_aligned(size_t size) {
  __attribute__((aligned(64))) volatile char fixed[64];
  volatile char* const variable = (volatile char*)__builtin_alloca(size);
  uintptr_t first = 0, second = 0;
  fixed[3] = 7;
  variable[size - 1] = 9;
  pirn_switch(&here, &there, &first, &second);
  return fixed[3] == 7 && variable[size - 1] == 9 && (uintptr_t)fixed % 64 == 0;
}

static void frames(void) {
  begin(clear_below);
  expect(leaf(), "the red zone of a leaf");
  expect(over_aligned(100), "an over-aligned variable and alloca");
  expect(leaf(), "the red zone of a leaf, again");
  end();
}

/* ---- unwinding, alignment, the last switch ---- */

static void ends(void) {
  uintptr_t first = 1, second = 2;
  begin(unwind_and_leave);
  pirn_switch(&here, &there, &first, &second);
  expect(first == 0, "the stack is aligned at entry");
  expect(second == 99, "the words of a last switch arrive");
  expect(depth > 0 && depth <= 4, "a backtrace ends at the root");
  end();
}

/* ---- stacks ---- */

static void* body(pirn_coroutine* self, void* first) {
  (void)self;
  return first;
}

static void stacks(void) {
  pirn_coroutine* coroutine = NULL;
  void *top = NULL, *again = NULL;
  expect(pirn_stack_lend(NULL, &top) == -EINVAL && pirn_stack_lend(stack, NULL) == -EINVAL, "null is refused");
  expect(pirn_stack_take_back(stack) == -EINVAL && pirn_stack_take_back(NULL) == 0, "a stack that was not lent");
  expect(pirn_stack_lend(stack, &top) == 0 && top != NULL && (uintptr_t)top % 16 == 0, "a stack is lent");
  expect(pirn_stack_lend(stack, &again) == -EBUSY && pirn_create(&coroutine, stack, body, NULL) == -EBUSY &&
             pirn_stack_destroy(stack) == -EBUSY,
         "a lent stack is taken");
  expect(pirn_stack_take_back(stack) == 0 && pirn_create(&coroutine, stack, body, NULL) == 0, "it is free again");
  expect(pirn_stack_take_back(stack) == -EINVAL && pirn_stack_lend(stack, &top) == -EBUSY, "a coroutine's is not lent");
  expect(pirn_destroy(coroutine) == 0, "the coroutine ends");
}

int main(void) {
  if (pirn_stack_create(&stack, 0) != 0) {
    return 2;
  }
  words();
  live_values();
  frames();
  ends();
  stacks();
  expect(pirn_stack_destroy(stack) == 0, "the stack is free");
  printf("%d failures\n", failures);
  return failures != 0;
}
