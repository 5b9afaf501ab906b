/* aco.h under AddressSanitizer: a pointer into the frames of a coroutine that has yielded is reported, where others
 * share the stack. */
#include "aco.h"

#include "check.h"

/* Clang's variables would lie elsewhere. */
const char* __asan_default_options(void);
const char* __asan_default_options(void) { return "detect_stack_use_after_return=0"; }

static aco_t* main_co;
static aco_share_stack_t* stack;
static volatile int* of_frame;

static void shows_its_frame(void) {
  volatile int value = 7;
  for (;;) {
    of_frame = &value;
    aco_yield();
    CHECK(value == 7);
  }
}
static void prepare(aco_t** co, int coroutines) {
  int i;
  aco_thread_init(NULL);
  main_co = aco_create(NULL, NULL, 0, NULL, NULL);
  stack = aco_share_stack_new(0);
  for (i = 0; i < coroutines; ++i) {
    co[i] = aco_create(main_co, stack, 0, shows_its_frame, NULL);
  }
}

static void read_a_frame_of_several(void) {
  aco_t* co[2];
  prepare(co, 2);
  aco_resume(co[0]);
  printf("%d", *of_frame);
}
static void read_a_frame_of_several_later(void) {
  aco_t* co[2];
  int i;
  prepare(co, 2);
  for (i = 0; i < 7; ++i) {
    aco_resume(co[i % 3 / 2]);
  }
  printf("%d", *of_frame);
}

int main(void) {
  aco_t* co[3];
  int i;
#ifdef PIRN_TEST_SANITIZED
  CHECK_DIES(read_a_frame_of_several, 0, "use-after-poison");
  CHECK_DIES(read_a_frame_of_several_later, 0, "use-after-poison");
#else
  (void)read_a_frame_of_several;
  (void)read_a_frame_of_several_later;
#endif
  prepare(co, 1);
  for (i = 0; i < 3; ++i) {
    aco_resume(co[0]);
    CHECK(*of_frame == 7); /* nobody else is there */
  }
  co[1] = aco_create(main_co, stack, 0, shows_its_frame, NULL);
  co[2] = aco_create(main_co, stack, 0, shows_its_frame, NULL);
  for (i = 0; i < 30; ++i) {
    aco_resume(co[i * i % 3]);
    if (i == 20) {
      aco_reset(co[i * i % 3]);
    }
  }
  for (i = 0; i < 3; ++i) {
    aco_destroy(co[i]);
  }
  aco_share_stack_destroy(stack);
  aco_destroy(main_co);
  return 0;
}
