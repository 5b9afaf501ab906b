/* aco.h: floating-point control words, separate for each coroutine or, with ACO_CONFIG_SHARE_FPU_MXCSR_ENV, shared by
   all. */
#include "aco.h"

#include <fenv.h>

#include "check.h"

/* Whether a third is rounded upwards; the nearest double is below it. */
static int rounding(void) {
  volatile double one = 1, three = 3, third;
  third = one / three;
  return third > 0x1.5555555555555p-2;
}

static int seen[2];
static void round_upwards(void) {
  seen[0] = fegetround();
  fesetround(FE_UPWARD);
  CHECK(rounding() == 1);
  aco_yield();
  seen[1] = fegetround();
  CHECK(rounding() == (seen[1] == FE_UPWARD));
  aco_exit();
}
static void round_downwards(void) {
  fesetround(FE_DOWNWARD);
  CHECK(rounding() == 0);
  aco_yield();
  CHECK(fegetround() == FE_DOWNWARD);
  aco_exit();
}

#if defined(__x86_64__) || defined(__i386__)
/* Checks each of the two units separately. */
static void check_units(int rounds) {
  unsigned short x87;
  unsigned mxcsr;
  __asm__ volatile("fnstcw %0\n\tstmxcsr %1" : "=m"(x87), "=m"(mxcsr));
  CHECK((x87 & 0xc00) == rounds && (mxcsr >> 3 & 0xc00) == (unsigned)rounds);
}
#else
static void check_units(int rounds) { CHECK(fegetround() == rounds); }
#endif

int main(void) {
  char words[16];
  aco_t *main_co, *up, *down;
  aco_share_stack_t* stack;
#ifdef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
  const int own = 0;
#else
  const int own = 1;
#endif
  aco_thread_init(NULL);
  fesetround(FE_TOWARDZERO); /* after aco_thread_init: coroutines do not begin with it */
  main_co = aco_create(NULL, NULL, 0, NULL, NULL);
  stack = aco_share_stack_new(0);
  up = aco_create(main_co, stack, 0, round_upwards, NULL);
  down = aco_create(main_co, stack, 0, round_downwards, NULL);
  aco_resume(up);
  CHECK(seen[0] == (own ? FE_TONEAREST : FE_TOWARDZERO));
  CHECK(fegetround() == (own ? FE_TOWARDZERO : FE_UPWARD));
  check_units(own ? FE_TOWARDZERO : FE_UPWARD);
  CHECK(rounding() == (own ? 0 : 1));
  aco_resume(down);
  CHECK(fegetround() == (own ? FE_TOWARDZERO : FE_DOWNWARD));
  check_units(own ? FE_TOWARDZERO : FE_DOWNWARD);
  aco_resume(up);
  CHECK(seen[1] == (own ? FE_UPWARD : FE_DOWNWARD));
  check_units(own ? FE_TOWARDZERO : FE_DOWNWARD);
  aco_resume(down);
  CHECK(up->is_end && down->is_end);
  fesetround(FE_UPWARD);
  memset(words, 0, sizeof words);
  aco_save_fpucw_mxcsr(words);
#if defined(__x86_64__) || defined(__i386__)
  CHECK((words[1] & 0xc) == FE_UPWARD >> 8 && (words[5] & 0x60) == FE_UPWARD >> 5);
#endif
  aco_destroy(up);
  aco_destroy(down);
  aco_share_stack_destroy(stack);
  aco_destroy(main_co);
  return 0;
}
