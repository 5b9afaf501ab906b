/* aco.h: the mistakes that end the process, and their messages. */
#include "aco.h"

#include "aco_assert_override.h"
#include "check.h"

/* ---- memory that is exhausted when the test says so ---------------------------------------------------------------
 */

#if !defined(PIRN_TEST_SANITIZED) && defined(__GLIBC__)
#define HAVE_EXHAUSTION 1
#ifdef __cplusplus
extern "C" {
#endif
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
static size_t refused_from = (size_t)-1;
void* malloc(size_t size) { return size >= refused_from ? NULL : __libc_malloc(size); }
/* A compiler makes one call of a malloc and the zeros behind it. */
void* calloc(size_t count, size_t size) { return count * size >= refused_from ? NULL : __libc_calloc(count, size); }
#ifdef __cplusplus
}
#endif
#endif

static aco_t* main_co;

static aco_t* on_stack_of(size_t size, aco_cofuncp_t function) {
  main_co = aco_create(NULL, NULL, 0, NULL, NULL);
  return aco_create(main_co, aco_share_stack_new(size), 0, function, NULL);
}

static void just_return(void) { aco_yield(); }
static void return_from_it(void) {
  aco_t* co;
  aco_thread_init(NULL);
#ifdef PIRN_TEST_SANITIZED
  co = on_stack_of(0, just_return);
#else
  co = on_stack_of(1, just_return); /* the message fits on the smallest stack */
#endif
  aco_resume(co);
  aco_resume(co);
}
static void return_at_once(void) {}
static void return_on_a_shared_stack(void) {
  aco_t *co, *other;
  aco_thread_init(NULL);
  co = on_stack_of(0, just_return); /* optimized, it jumps to aco_yield: its return address is not needed */
  other = aco_create(main_co, co->share_stack, 0, return_at_once, NULL);
  aco_resume(co);
  aco_resume(other);
}
static void return_from_an_image(void) {
  aco_t *co, *other;
  aco_thread_init(NULL);
  co = on_stack_of(0, just_return);
  other = aco_create(main_co, co->share_stack, 0, just_return, NULL);
  aco_resume(co);
  aco_resume(other);
  aco_resume(co);
}

static void own_last_word(void) {
  CHECK(aco_get_co() != NULL && aco_get_co()->fp == just_return && aco_get_arg() == NULL);
  fputs("my last word\n", stderr);
}
static void return_with_last_word(void) {
  aco_t* co;
  aco_thread_init(own_last_word);
  co = on_stack_of(0, just_return);
  aco_resume(co);
  aco_resume(co);
}

static void write_below(void) {
  *(volatile char*)((char*)aco_get_co()->share_stack->ptr - 1) = 1;
  aco_exit();
}
static void hit_the_guard(void) { aco_resume(on_stack_of(0, write_below)); }

static void just_exit(void) { aco_exit(); }
static void resume_the_ended(void) {
  aco_t* const co = on_stack_of(0, just_exit);
  aco_resume(co);
  aco_resume(co);
}
static void switch_to_the_ended(void) {
  aco_t* const co = on_stack_of(0, just_exit);
  aco_resume(co);
  acosw(main_co, co);
}
static void resume_main(void) {
  on_stack_of(0, just_exit);
  aco_resume(main_co);
}
static void yield_outside(void) { aco_yield(); }
static void exit_outside(void) { aco_exit(); }
static void create_without_stack(void) { aco_create(aco_create(NULL, NULL, 0, NULL, NULL), NULL, 0, just_exit, NULL); }
static void destroy_own_stack(void) { aco_share_stack_destroy(aco_get_co()->share_stack); }
static void destroy_a_stack_in_use(void) { aco_resume(on_stack_of(0, destroy_own_stack)); }
static void resume_without_stack(void) {
  aco_t* const co = on_stack_of(0, just_return);
  aco_resume(co);
  aco_share_stack_destroy(co->share_stack);
  aco_resume(co);
}
static void destroy_a_stack_twice(void) {
  aco_t* const co = on_stack_of(0, just_return);
  aco_share_stack_destroy(co->share_stack);
  aco_share_stack_destroy(co->share_stack);
}
static void destroy_nothing(void) { aco_destroy(NULL); }
static void reset_itself(void) { aco_reset(aco_get_co()); }
static void reset_the_running(void) { aco_resume(on_stack_of(0, reset_itself)); }

static aco_t* other_co; /* suspended */
static void (*misuse)(aco_t* co);
static void misuse_itself(void) { misuse(aco_get_co()); }
static void misuse_main(void) { misuse(main_co); }
static void misuse_other(void) { misuse(other_co); }
static void misuse_on_stack_of_other(void (*function)(aco_t* co)) {
  misuse = function;
  other_co = on_stack_of(0, just_return);
  aco_resume(other_co);
  aco_resume(aco_create(main_co, other_co->share_stack, 0, misuse_other, NULL));
}
static void misuse_on_another_stack(void (*function)(aco_t* co), aco_cofuncp_t where) {
  misuse = function;
  other_co = on_stack_of(0, just_return);
  aco_resume(other_co);
  aco_resume(aco_create(main_co, aco_share_stack_new(0), 0, where, NULL));
}
static void resume_itself(void) { misuse_on_another_stack(aco_resume, misuse_itself); }
static void resume_on_the_same_stack(void) { misuse_on_stack_of_other(aco_resume); }
static void resume_on_another_stack(void) { misuse_on_another_stack(aco_resume, misuse_other); }
static void yield_for_another(void) { misuse_on_another_stack(aco_yield1, misuse_other); }
static void exit_for_another(void) { misuse_on_another_stack(aco_exit1, misuse_other); }
static void destroy_itself(void) { misuse_on_another_stack(aco_destroy, misuse_itself); }
static void destroy_main(void) { misuse_on_another_stack(aco_destroy, misuse_main); }

/* A coroutine of a coroutine: the one in between is neither running nor suspended. */
static void nest(void) {
  other_co = aco_get_co();
  aco_resume(aco_create(other_co, aco_share_stack_new(0), 0, misuse_other, NULL));
}
static void misuse_nested(void (*function)(aco_t* co)) {
  misuse = function;
  aco_resume(on_stack_of(0, nest));
}
static void resume_outer(void) { misuse_nested(aco_resume); }
static void reset_outer(void) { misuse_nested(aco_reset); }
static void destroy_outer(void) { misuse_nested(aco_destroy); }
static void resume_on_first_stack(void) {
  aco_resume(aco_create(aco_get_co(), other_co->share_stack, 0, just_return, NULL));
}
static void nest_on_first_stack(void) {
  other_co = aco_get_co();
  resume_on_first_stack();
}
static void nest_over_another_stack(void) {
  other_co = aco_get_co();
  aco_resume(aco_create(other_co, aco_share_stack_new(0), 0, resume_on_first_stack, NULL));
}
static void resume_on_own_stack(void) { aco_resume(on_stack_of(0, nest_on_first_stack)); }
static void resume_on_stack_of_waiting(void) { aco_resume(on_stack_of(0, nest_over_another_stack)); }
static aco_t* inner_co;
static void suspend_inner(void) {
  inner_co = aco_create(aco_get_co(), aco_share_stack_new(0), 0, just_return, NULL);
  aco_resume(inner_co);
  aco_yield();
}
static void resume_inner(void) {
  aco_resume(on_stack_of(0, suspend_inner));
  aco_resume(inner_co);
}

static void yield_deep(void) {
  char bytes[3000];
  memset(bytes, 1, sizeof bytes);
  __asm__ volatile("" : : "r"(bytes) : "memory");
  aco_yield();
  __asm__ volatile("" : : "r"(bytes) : "memory");
  aco_exit();
}
static void overflow(void) {
  aco_t *co, *other;
  char* memory;
  main_co = aco_create(NULL, NULL, 0, NULL, NULL);
  co = aco_create(main_co, aco_share_stack_new2(1 << 20, 0), 0, yield_deep, NULL);
  other = aco_create(main_co, co->share_stack, 0, just_exit, NULL);
  aco_resume(co);
  /* As if the stack were smaller than its contents. */
  memory = (char*)co->share_stack->align_retptr - 1000;
  co->share_stack->align_limit = (size_t)((char*)co->share_stack->align_retptr - memory);
  aco_resume(other);
}

static void huge_stack(void) { aco_share_stack_new((size_t)-1 - (1 << 20)); }
static void largest_stack(void) { aco_share_stack_new((size_t)-1 - 100); }
#ifdef HAVE_EXHAUSTION
static void no_coroutine(void) {
  refused_from = sizeof(aco_t);
  aco_create(NULL, NULL, 0, NULL, NULL);
}
static void no_unguarded_stack(void) {
  refused_from = 1 << 20;
  aco_share_stack_new2(1 << 20, 0);
}
static void no_state_of_a_stack(void) {
  refused_from = sizeof(aco_share_stack_t);
  aco_share_stack_new2(0, 1);
}
static void no_image(void) {
  aco_t* const co = on_stack_of(0, yield_deep);
  aco_t* const other = aco_create(main_co, co->share_stack, 0, just_exit, NULL);
  aco_resume(co);
  refused_from = 3000;
  aco_resume(other);
}
#endif

static void fail_assertion(void) { assert(main_co == (aco_t*)1); }
static void fail_pointer(void) { assertptr(main_co); }
static void fail_allocation(void) { assertalloc_ptr(main_co); }
static void fail_allocation_bool(void) { assertalloc_bool(main_co != NULL); }

int main(void) {
  CHECK_DIES(return_from_it, SIGABRT, "returned from its function 0x");
  CHECK_DIES(return_from_it, SIGABRT, "instead of calling aco_exit()");
  CHECK_DIES(return_on_a_shared_stack, SIGABRT, "instead of calling aco_exit()");
  CHECK_DIES(return_from_an_image, SIGABRT, "instead of calling aco_exit()");
  CHECK_DIES(return_with_last_word, SIGABRT, "my last word");
#ifndef PIRN_TEST_SANITIZED
  CHECK_DIES(hit_the_guard, SIGSEGV, "");
#else
  CHECK_DIES(hit_the_guard, 0, "SEGV");
#endif
  CHECK_DIES(resume_the_ended, SIGABRT, "has called aco_exit");
  CHECK_DIES(switch_to_the_ended, SIGABRT, "acosw: the coroutine's frames are not on its share stack");
  CHECK_DIES(resume_main, SIGABRT, "aco_resume: not a coroutine");
  CHECK_DIES(yield_outside, SIGABRT, "aco_yield: called outside");
  CHECK_DIES(exit_outside, SIGABRT, "aco_exit: called outside");
  CHECK_DIES(create_without_stack, SIGABRT, "aco_create: a coroutine needs a share stack");
  CHECK_DIES(destroy_a_stack_in_use, SIGABRT, "aco_share_stack_destroy");
  CHECK_DIES(destroy_a_stack_twice, SIGABRT, "aco_share_stack_destroy");
  CHECK_DIES(resume_without_stack, SIGABRT, "aco_resume: the share stack of the coroutine has been destroyed");
  CHECK_DIES(destroy_nothing, SIGABRT, "aco_destroy: null");
  CHECK_DIES(reset_the_running, SIGABRT, "aco_reset");
  CHECK_DIES(resume_on_the_same_stack, SIGABRT, "aco_resume: the caller is not the main coroutine");
  CHECK_DIES(resume_on_another_stack, SIGABRT, "aco_resume: the caller is not the main coroutine");
  CHECK_DIES(resume_itself, SIGABRT, "aco_resume: the caller is not the main coroutine");
  CHECK_DIES(resume_outer, SIGABRT, "aco_resume: the caller is not the main coroutine");
  CHECK_DIES(resume_inner, SIGABRT, "aco_resume: the caller is not the main coroutine");
  CHECK_DIES(resume_on_own_stack, SIGABRT, "is in use by the caller, or by a coroutine that waits");
  CHECK_DIES(resume_on_stack_of_waiting, SIGABRT, "is in use by the caller, or by a coroutine that waits");
  CHECK_DIES(yield_for_another, SIGABRT, "aco_yield1 for a coroutine that is not running");
  CHECK_DIES(exit_for_another, SIGABRT, "aco_exit1 for a coroutine that is not running");
  CHECK_DIES(destroy_itself, SIGABRT, "aco_destroy: null, or a coroutine that runs");
  CHECK_DIES(destroy_main, SIGABRT, "aco_destroy: null, or a coroutine that runs");
  CHECK_DIES(destroy_outer, SIGABRT, "aco_destroy: null, or a coroutine that runs");
  CHECK_DIES(reset_outer, SIGABRT, "aco_reset");
  CHECK_DIES(overflow, SIGABRT, "has left its share stack");
  CHECK_DIES(huge_stack, SIGABRT, "aco_share_stack_new2: memory exhausted: no ");
  CHECK_DIES(largest_stack, SIGABRT, "aco_share_stack_new2: memory exhausted: no ");
#ifdef HAVE_EXHAUSTION
  CHECK_DIES(no_coroutine, SIGABRT, "aco_create: memory exhausted: no ");
  CHECK_DIES(no_unguarded_stack, SIGABRT, "aco_share_stack_new2: memory exhausted: no 1048576 bytes for a share stack");
  CHECK_DIES(no_state_of_a_stack, SIGABRT, "bytes for a share stack's state");
  CHECK_DIES(no_image, SIGABRT, "bytes for the image of a coroutine");
#endif
  CHECK_DIES(fail_assertion, SIGABRT, "assertion failed: main_co == (aco_t*)1");
  CHECK_DIES(fail_pointer, SIGABRT, "main_co is null");
  CHECK_DIES(fail_allocation, SIGABRT, "memory exhausted: main_co is null");
  CHECK_DIES(fail_allocation_bool, SIGABRT, "aco_deaths.c");
  return 0;
}
