/* aco.h: the behaviour of coroutines, and the statistics about them. */
#include "aco.h"

#include <pthread.h>

#include "aco_assert_override.h"
#include "check.h"

static aco_t* main_co;

/* ---- resume, yield, exit, by all their names ----------------------------------------------------------------------
 */

static int steps;

static void step(void) {
  int* const count = (int*)aco_get_arg();
  aco_t* const self = aco_get_co();
  CHECK(self == aco_co() && self == aco_gtls_co && self->main_co == main_co && !aco_is_main_co(self));
  CHECK(self->arg == count && self->fp == step && self->is_end == 0);
  CHECK(self->share_stack->owner == self);
  ++*count;
  aco_yield();
  ++*count;
  aco_yield1(self);
  ++*count;
  CHECK(acosw(self, self->main_co) == self->main_co);
  ++*count;
  if (*count == 4) {
    aco_exit();
  }
  aco_exit1(self);
}

static void test_steps(void) {
  aco_share_stack_t* const stack = aco_share_stack_new(0);
  aco_t* const co = aco_create(main_co, stack, 0, step, &steps);
  int i;
  assertptr(co);
  CHECK(co->save_stack.sz == 64 && co->save_stack.valid_sz == 0 && co->save_stack.ptr != NULL && co->is_end == 0);
  CHECK(co->reg[ACO_REG_IDX_RETADDR] != NULL && co->reg[ACO_REG_IDX_SP] == stack->align_retptr);
  for (i = 1; i <= 4; ++i) {
    CHECK(!co->is_end);
    aco_resume(co);
    CHECK(steps == i && aco_gtls_co == main_co);
  }
  CHECK(co->is_end && stack->owner == NULL);
  aco_destroy(co);
  aco_share_stack_destroy(stack);
}

/* ---- as programs have it: no prototype, and the share stack goes first ---------------------------------------------
 */

#if !defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
static void yield_forever() {
  for (;;) {
    ++*(int*)aco_get_arg();
    aco_yield();
  }
}
#if !defined(__cplusplus)
#pragma GCC diagnostic pop
#endif

static void test_stack_first(void) {
  aco_share_stack_t* stack = aco_share_stack_new(0);
  aco_t* all[3];
  int count = 0, i;
  for (i = 0; i < 3; ++i) {
    all[i] = aco_create(main_co, stack, 0, yield_forever, &count);
    aco_resume(all[i]);
  }
  aco_share_stack_destroy(stack);
  CHECK(count == 3);
  for (i = 0; i < 3; ++i) {
    aco_destroy(all[i]);
  }
  stack = aco_share_stack_new2(4096, 0); /* for coroutines that are never destroyed */
  all[0] = aco_create(main_co, stack, 0, yield_forever, &count);
  all[1] = aco_create(main_co, stack, 0, yield_forever, &count);
  aco_resume(all[0]);
  aco_share_stack_destroy(stack);
  aco_destroy(all[1]);
  aco_reset(all[0]);
  aco_destroy(all[0]);
  CHECK(count == 4);
}

/* ---- statistics ---------------------------------------------------------------------------------------------------
 */

static void keep_200(void) {
  char bytes[200];
  memset(bytes, (int)(intptr_t)aco_get_arg(), sizeof bytes);
  __asm__ volatile("" : : "r"(bytes) : "memory");
  for (;;) {
    aco_yield();
    CHECK(bytes[0] == (char)(intptr_t)aco_get_arg() && bytes[199] == bytes[0]);
    __asm__ volatile("" : : "r"(bytes) : "memory");
  }
}

static void keep_nothing(void) {
  for (;;) {
    aco_yield();
  }
}

static void test_statistics(aco_cofuncp_t function, size_t least, size_t most) {
  enum { rounds = 7 };
  aco_share_stack_t* const stack = aco_share_stack_new(1 << 16);
  aco_share_stack_t* const own = aco_share_stack_new(1 << 16);
  aco_t* const first = aco_create(main_co, stack, 0, function, (void*)1);
  aco_t* const second = aco_create(main_co, stack, 1000, function, (void*)2);
  aco_t* const alone = aco_create(main_co, own, 0, function, (void*)3);
  size_t live;
  int i;
  CHECK(second->save_stack.sz == 1000);
  for (i = 0; i < rounds; ++i) {
    aco_resume(first);
    aco_resume(first); /* it is already there */
    aco_resume(second);
    aco_resume(alone);
  }
  live = (size_t)((char*)stack->align_retptr - (char*)first->reg[ACO_REG_IDX_SP]);
  if (live != 0) { /* which is not counted as a copy */
    CHECK(first->save_stack.ct_save == rounds && first->save_stack.ct_restore == rounds - 1);
    CHECK(second->save_stack.ct_save == rounds - 1 && second->save_stack.ct_restore == rounds - 1);
  }
  CHECK(alone->save_stack.ct_save == 0 && alone->save_stack.ct_restore == 0 && alone->save_stack.max_cpsz == 0);
  CHECK(stack->owner == second && own->owner == alone);
  CHECK(first->save_stack.valid_sz == live && first->save_stack.max_cpsz == live);
  CHECK(live >= least && live <= most && first->save_stack.sz >= live);
  CHECK(stack->align_validsz == second->save_stack.valid_sz + sizeof(void*));
  CHECK(second->save_stack.sz >= 1000 && stack->align_limit <= stack->sz);
  aco_destroy(second);
  CHECK(stack->owner == NULL);
  aco_destroy(first);
  aco_destroy(alone);
  aco_share_stack_destroy(stack);
  aco_share_stack_destroy(own);
}

/* ---- small images -------------------------------------------------------------------------------------------------
 * They take a separate path while they have no registers and one size: here next to others. */

/* No value here is worth a register across aco_yield. */
#define KEEP_SMALL(name, size)       \
  static void name(void) {           \
    volatile char bytes[size];       \
    int i;                           \
    for (i = 0; i < (size); ++i) {   \
      bytes[i] = size;               \
    }                                \
    for (;;) {                       \
      aco_yield();                   \
      for (i = 0; i < (size); ++i) { \
        CHECK(bytes[i] == (size));   \
      }                              \
    }                                \
  }
KEEP_SMALL(keep_24, 24)
KEEP_SMALL(keep_120, 120)

static void keep_in_a_register_later(void) {
  intptr_t kept;
  aco_yield();
  aco_yield();
  kept = (intptr_t)aco_get_arg();
  __asm__ volatile("" : "+r"(kept));
  aco_yield();
  CHECK(kept == (intptr_t)aco_get_arg());
  aco_yield();
  CHECK(kept == (intptr_t)aco_get_arg());
  aco_exit();
}

static void test_small(aco_cofuncp_t of_even, aco_cofuncp_t of_odd) {
  enum { number = 4 };
  aco_share_stack_t* const stack = aco_share_stack_new(0);
  aco_t* all[number];
  int i, round;
  for (i = 0; i < number; ++i) {
    all[i] = aco_create(main_co, stack, 0, i % 2 == 0 ? of_even : of_odd, (void*)(intptr_t)(i + 1));
  }
  for (round = 1; round <= 5; ++round) {
    for (i = 0; i < number; ++i) {
      aco_resume(all[i]);
    }
    for (i = 0; i < number; ++i) {
      CHECK(all[i]->save_stack.ct_save == (size_t)(i == number - 1 ? round - 1 : round) || all[i]->is_end);
    }
  }
  for (i = 0; i < number; ++i) {
    aco_destroy(all[i]);
  }
  aco_share_stack_destroy(stack);
}

/* ---- kept values ---------------------------------------------------------------------------------------------------
 */

static unsigned next_random(unsigned* state) {
  *state = *state * 1664525U + 1013904223U;
  return *state >> 16;
}

/* Frames of all sizes, at all depths, and more live values than there are registers that a call preserves. */
static unsigned long deep(unsigned seed, int depth) {
  const size_t size = 1 + (seed * 37U + (unsigned)depth * 101U) % 300;
  unsigned char bytes[300];
  unsigned a = seed, b = seed + 1, c = seed + 2, d = seed + 3, e = seed + 4, f = seed + 5, g = seed + 6;
  double x = seed * 0.5, y = seed * 0.25, z = seed * 0.125;
  unsigned long below = 0;
  int round;
  size_t i;
  memset(bytes, (int)(seed + (unsigned)depth), size);
  for (round = 0; round < 3; ++round) {
    aco_yield();
    a += b, b += c, c += d, d += e, e += f, f += g, g += a;
    x += y, y += z, z += x;
    if (depth > 0 && round == 1) {
      below = deep(seed, depth - 1);
    }
    for (i = 0; i < size; ++i) {
      CHECK(bytes[i] == (unsigned char)(seed + (unsigned)depth));
    }
  }
  return below + a + 3UL * b + 5UL * c + 7UL * d + 11UL * e + 13UL * f + 17UL * g + (unsigned long)((x + y + z) * 8);
}

struct deep_job {
  unsigned seed;
  unsigned long result;
};
static void run_deep(void) {
  struct deep_job* const job = (struct deep_job*)aco_get_arg();
  job->result = deep(job->seed, (int)(job->seed % 4));
  aco_exit();
}

static void test_contents(aco_t* of_thread, unsigned random) {
  enum { coroutines = 40, stacks = 2 };
  struct deep_job jobs[coroutines];
  aco_t* co[coroutines];
  aco_share_stack_t* shared[stacks];
  int left = coroutines;
  unsigned i;
  for (i = 0; i < stacks; ++i) {
    shared[i] = aco_share_stack_new2(1 << 17, (char)(i % 2));
  }
  for (i = 0; i < coroutines; ++i) {
    jobs[i].seed = i % 10;
    jobs[i].result = 0;
    co[i] = aco_create(of_thread, shared[i % 3 == 0], i % 2 * 16, run_deep, &jobs[i]);
  }
  while (left > 0) {
    i = next_random(&random) % coroutines;
    if (co[i] != NULL) {
      aco_resume(co[i]);
      if (co[i]->is_end) {
        CHECK(co[i]->save_stack.ct_save - co[i]->save_stack.ct_restore <= 1);
        aco_destroy(co[i]);
        co[i] = NULL;
        --left;
      }
    }
  }
  for (i = 10; i < coroutines; ++i) {
    CHECK(jobs[i].result == jobs[i - 10].result);
  }
  aco_share_stack_destroy(shared[0]);
  aco_share_stack_destroy(shared[1]);
}

/* A debugger of coroutines finds their frames in the image. */
static long* where;
static void show(void) {
  long local = (long)(intptr_t)aco_get_arg();
  where = &local;
  for (;;) {
    aco_yield();
    local += 100;
    __asm__ volatile("" : : "r"(&local) : "memory");
  }
}
static void test_image(void) {
  aco_share_stack_t* const stack = aco_share_stack_new(0);
  aco_t* const first = aco_create(main_co, stack, 0, show, (void*)7);
  aco_t* const second = aco_create(main_co, stack, 0, show, (void*)8);
  const char* at;
  aco_resume(first);
  aco_resume(first);
#if !defined(__SANITIZE_ADDRESS__) && !defined(PIRN_TEST_SANITIZED) /* which may place locals elsewhere */
  at = (const char*)where;
  CHECK(at > (char*)first->reg[ACO_REG_IDX_SP] && at < (char*)stack->align_highptr && *where == 107);
  aco_resume(second);
  at = (const char*)first->save_stack.ptr + (at - (char*)first->reg[ACO_REG_IDX_SP]);
  CHECK(*(const long*)at == 107);
#else
  at = NULL;
  CHECK(at == NULL);
#endif
  aco_destroy(first);
  aco_destroy(second);
  aco_share_stack_destroy(stack);
}

/* ---- aco_reset ----------------------------------------------------------------------------------------------------
 */

static int begun[2];
static void begin0(void) {
  ++begun[0];
  aco_yield();
  aco_exit();
}
static void begin1(void) {
  ++begun[1];
  CHECK(aco_get_arg() == begun);
  aco_exit();
}
static void test_reset(void) {
  aco_share_stack_t* const stack = aco_share_stack_new(0);
  aco_t* const co = aco_create(main_co, stack, 0, begin0, NULL);
  aco_t* const other = aco_create(main_co, stack, 0, keep_200, NULL);
  aco_reset(co); /* fresh */
  aco_resume(co);
  aco_reset(co); /* on its stack */
  CHECK(stack->owner == NULL && !co->is_end);
  aco_resume(co);
  aco_resume(other);
  aco_reset(co); /* in its image */
  aco_resume(co);
  CHECK(begun[0] == 3);
  aco_resume(co);
  CHECK(co->is_end);
  co->fp = begin1;
  co->arg = begun;
  aco_reset(co); /* ended */
  CHECK(!co->is_end);
  aco_resume(other);
  aco_resume(co);
  CHECK(co->is_end && begun[1] == 1);
  CHECK(co->save_stack.ct_save == 1);
  aco_destroy(co);
  aco_destroy(other);
  aco_share_stack_destroy(stack);
}

/* ---- share stacks -------------------------------------------------------------------------------------------------
 */

static void check_size(size_t wanted, char guard, size_t least) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  aco_share_stack_t* const stack = aco_share_stack_new2(wanted, guard);
  const uintptr_t high = (uintptr_t)stack->align_highptr;
  assertalloc_ptr(stack);
  assertalloc_bool(stack->ptr != NULL);
  CHECK(stack->sz >= least && stack->sz >= 4096 && stack->owner == NULL);
  CHECK(high % 16 == 0 && high <= (uintptr_t)stack->ptr + stack->sz && high + 64 > (uintptr_t)stack->ptr + stack->sz);
  CHECK(stack->guard_page_enabled == guard);
  if (guard) {
    CHECK(stack->sz % page == 0 && stack->sz < (least > 4096 ? least : 4096) + page);
    CHECK(stack->real_sz == stack->sz + page && (char*)stack->ptr == (char*)stack->real_ptr + page);
    CHECK(((const volatile char*)stack->ptr)[-1] == 0); /* it can be read */
  } else {
    CHECK(stack->sz == (least > 4096 ? least : 4096));
  }
  ((volatile char*)stack->ptr)[0] = 1;
  aco_share_stack_destroy(stack);
}

static void test_share_stacks(void) {
  check_size(0, 1, 2U << 20);
  check_size(0, 0, 2U << 20);
  check_size(1, 1, 1);
  check_size(1, 0, 1);
  check_size(4096, 1, 4096);
  check_size(5000, 1, 5000);
  check_size(5000, 0, 5000);
  check_size(1 << 20, 1, 1U << 20);
}

/* A coroutine that is itself the main coroutine of another one, on another stack. */
static aco_share_stack_t* inner_stack;
static char order[16];
static void inner(void) {
  strcat(order, "i");
  aco_yield();
  strcat(order, "j");
  aco_exit();
}
static void outer(void) {
  aco_t* const self = aco_get_co();
  aco_t* const co = aco_create(self, inner_stack, 0, inner, NULL);
  strcat(order, "o");
  aco_resume(co);
  CHECK(aco_get_co() == self);
  strcat(order, "p");
  aco_yield();
  aco_resume(co);
  CHECK(co->is_end && aco_get_co() == self);
  aco_destroy(co);
  strcat(order, "q");
  aco_exit();
}
static void test_nested(void) {
  aco_share_stack_t* const stack = aco_share_stack_new(0);
  aco_t* const co = aco_create(main_co, stack, 0, outer, NULL);
  inner_stack = aco_share_stack_new(0);
  aco_resume(co);
  strcat(order, "m");
  aco_resume(co);
  CHECK(co->is_end && strcmp(order, "oipmjq") == 0);
  aco_destroy(co);
  aco_share_stack_destroy(stack);
  aco_share_stack_destroy(inner_stack);
}

static void in_turn(void) {
  unsigned* const turns = (unsigned*)aco_get_arg();
  for (;;) {
    ++*turns;
    aco_yield();
  }
}
/* Several main coroutines that stand for the stack of one thread, and a new one when the last used one is gone. */
static void test_mains(void) {
  aco_share_stack_t* const stack = aco_share_stack_new(0);
  aco_t* mains[3];
  aco_t* co[3];
  unsigned turns[3] = {0, 0, 0};
  unsigned i;
  for (i = 0; i < 3; ++i) {
    mains[i] = aco_create(NULL, NULL, 0, NULL, NULL);
    co[i] = aco_create(mains[i], stack, 0, in_turn, &turns[i]);
  }
  for (i = 0; i < 9; ++i) {
    aco_resume(co[i % 3]);
    CHECK(turns[i % 3] == i / 3 + 1 && aco_get_co() == mains[i % 3]);
  }
  for (i = 0; i < 3; ++i) {
    aco_destroy(co[i]);
    aco_destroy(mains[i]);
  }
  CHECK(aco_get_co() == NULL);
  aco_share_stack_destroy(stack);
}

/* acosw returns who has switched back: a coroutine, or the one of several main coroutines that has left the stack of
 * the thread. */
static aco_t* second_main;
static aco_t* beside;
static void switches(void) {
  aco_t* const self = aco_get_co();
  aco_yield();
  CHECK(acosw(self, main_co) == second_main);
  CHECK(acosw(self, beside) == beside);
  CHECK(acosw(self, second_main) == main_co);
  aco_exit();
}
static void switches_beside(void) {
  aco_t* const self = aco_get_co();
  aco_yield();
  CHECK(acosw(self, (aco_t*)aco_get_arg()) == second_main);
  aco_yield();
}
static void test_acosw(void) {
  aco_share_stack_t* const stack = aco_share_stack_new(0);
  aco_share_stack_t* const stack_beside = aco_share_stack_new(0);
  aco_t* const co = aco_create(main_co, stack, 0, switches, NULL);
  beside = aco_create(main_co, stack_beside, 0, switches_beside, co);
  second_main = aco_create(NULL, NULL, 0, NULL, NULL);
  aco_resume(co);
  aco_resume(beside);
  CHECK(acosw(main_co, co) == co);
  CHECK(acosw(second_main, co) == co);
  CHECK(acosw(second_main, beside) == beside);
  aco_resume(co);
  CHECK(co->is_end);
  aco_destroy(co);
  aco_destroy(beside);
  aco_destroy(second_main);
  aco_share_stack_destroy(stack);
  aco_share_stack_destroy(stack_beside);
}

static void test_mem_new(void) {
  int* many;
  char* text;
  aco_mem_new(many, 4 * sizeof *many);
  aco_mem_new(text, 2);
  many[3] = text[1] = 1;
  CHECK(many[3] == 1 && text[1] == 1);
  free(many);
  free(text);
}

/* ---- threads ------------------------------------------------------------------------------------------------------
 */

static void* in_thread(void* number) {
  aco_t* of_thread;
  CHECK(aco_gtls_co == NULL);
  aco_thread_init(NULL);
  of_thread = aco_create(NULL, NULL, 0, NULL, NULL);
  CHECK(aco_is_main_co(of_thread));
  test_contents(of_thread, (unsigned)(uintptr_t)number);
  aco_destroy(of_thread);
  return number;
}
static void test_threads(void) {
  pthread_t threads[3];
  uintptr_t i;
  for (i = 0; i < 3; ++i) {
    CHECK(pthread_create(&threads[i], NULL, in_thread, (void*)i) == 0);
  }
  test_contents(main_co, 99);
  for (i = 0; i < 3; ++i) {
    CHECK(pthread_join(threads[i], NULL) == 0);
  }
  CHECK(aco_gtls_co == main_co);
}

int main(void) {
  CHECK(ACO_VERSION_MAJOR == 1 && ACO_VERSION_MINOR == 2 && ACO_VERSION_PATCH == 4);
  CHECK(likely(1) && !unlikely(0));
  aco_runtime_test();
  aco_thread_init(NULL);
  main_co = aco_create(NULL, NULL, 0, NULL, NULL);
  test_steps();
  test_stack_first();
  test_statistics(keep_200, 200, 2000);
  test_statistics(keep_nothing, 0, 500);
  test_small(keep_24, keep_24);
  test_small(keep_120, keep_120);
  test_small(keep_120, keep_24);
  test_small(keep_in_a_register_later, keep_in_a_register_later);
  test_contents(main_co, 1);
  test_image();
  test_reset();
  test_share_stacks();
  test_nested();
  test_mains();
  test_acosw();
  test_mem_new();
  test_threads();
  aco_destroy(main_co);
  return 0;
}
