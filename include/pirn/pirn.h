/* The C API: coroutines without a scheduler, for C99 and whatever can call it. Needs libc and libgcc's unwinder only.
 *
 *   static void *count(pirn_coroutine *self, void *first) {
 *     for (;;) pirn_yield(self, first, &first);
 *   }
 *   pirn_coroutine *co;
 *   void *out;
 *   if (pirn_create(&co, NULL, count, NULL) == 0) {
 *     while (pirn_resume(co, "hello", &out) == PIRN_YIELDED) puts(out);
 *     pirn_destroy(co);
 *   }
 *
 * A result below 0 is a negated errno value; errno itself is left alone. Any thread may resume a coroutine, one at a
 * time. Addresses of thread-local variables, errno's too, must not be kept over a yield of one that changes threads.
 * It must yield on the thread that has resumed it: no fiber that carries both may move to another one in between.
 */
#pragma once

#include <stddef.h>

#if defined(__GNUC__)
#define PIRN_EXPORT __attribute__((visibility("default")))
#else
#define PIRN_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Memory that a coroutine runs on. */
typedef struct pirn_stack pirn_stack;
/** A function that can suspend half-way. */
typedef struct pirn_coroutine pirn_coroutine;

/** The body of a coroutine: gets the coroutine and the value of the first resume, and returns the value that the last
 * resume gives. C++ exceptions must not leave it: that ends the program. If the thread ends in it, by pthread_exit or
 * pthread_cancel, it is unwound, as pirn_destroy does, and then its resumer; the coroutine has ended. */
typedef void* (*pirn_function)(pirn_coroutine* self, void* first);

/** The results of pirn_resume without an error. */
enum { PIRN_ENDED = 0, PIRN_YIELDED = 1 };

/** The size of a stack if none is given. */
#define PIRN_DEFAULT_STACK_SIZE ((size_t)64 * 1024)
/** The smallest size of a stack: the first unwind of a process takes about 5 KB of a stack that pirn_destroy unwinds,
 * and on PowerPC, which has the most registers, 8 KB. */
#if defined(__powerpc64__)
#define PIRN_STACK_MIN ((size_t)16 * 1024)
#else
#define PIRN_STACK_MIN ((size_t)8 * 1024)
#endif

/* ---- stacks ---- */

/** Makes a stack of at least `size` bytes (0: PIRN_DEFAULT_STACK_SIZE), and at least PIRN_STACK_MIN, above a guard of
 * 64 KiB, where every access faults. -EINVAL: null, or too large a size; or an error of mmap: -ENOMEM, -EAGAIN. */
PIRN_EXPORT int pirn_stack_create(pirn_stack** result, size_t size);
/** Makes a stack in the caller's memory, without a guard. -EINVAL: null, or less than PIRN_STACK_MIN. */
PIRN_EXPORT int pirn_stack_create_in(pirn_stack** result, void* memory, size_t size);
/** Releases a stack; null is ignored. -EBUSY: a coroutine is on it. */
PIRN_EXPORT int pirn_stack_destroy(pirn_stack* stack);
/** Returns the number of bytes that a coroutine on it may use; 0 for null. */
PIRN_EXPORT size_t pirn_stack_size(const pirn_stack* stack);

/* ---- coroutines ---- */

/** Makes a coroutine, suspended before the first statement of `body`, on `stack`, which must outlive it. If `stack` is
 * null, the coroutine owns a new stack. -EINVAL: null; -EBUSY: another coroutine is on that stack; or as
 * pirn_stack_create. */
PIRN_EXPORT int pirn_create(pirn_coroutine** result, pirn_stack* stack, pirn_function body, void* user);
/** Ends a coroutine and releases it; null is ignored. If it is suspended, its stack is first unwound, on the calling
 * thread. Frames of C++ run their destructors; frames of C run the functions of their `cleanup` attributes if compiled
 * with -fexceptions. Frames without unwind tables, and those below them, are abandoned. C++ exceptions that it had
 * caught are released. Ends the program with a message where it is suspended under noexcept. -EBUSY: it is running. */
PIRN_EXPORT int pirn_destroy(pirn_coroutine* coroutine);
/** Ends the coroutine as pirn_destroy does, then begins anew on the same stack. -EINVAL: null; -EBUSY: it is
 * running. */
PIRN_EXPORT int pirn_reset(pirn_coroutine* coroutine, pirn_function body, void* user);

/** Runs the coroutine until it yields (PIRN_YIELDED) or returns (PIRN_ENDED). It gets `in`; `*out`, where not null,
 * gets the value that it yielded or returned. -EINVAL: null; -EBUSY: it is running; -ESRCH: it has ended. */
PIRN_EXPORT int pirn_resume(pirn_coroutine* coroutine, void* in, void** out);
/** Suspends the calling coroutine, which must be `self`; its resumer gets `out`. Returns 0 when it is resumed; `*in`,
 * where not null, is then the value sent. Does not return if it is destroyed or reset instead. -EINVAL: null; -EPERM:
 * it is not the coroutine that runs here; -ENOMEM: no memory to take along the open blocks of its C++ frames (see
 * fibers.md), and it runs on. */
PIRN_EXPORT int pirn_yield(pirn_coroutine* self, void* out, void** in);

/** Returns the coroutine that the caller runs in; null outside of any. Each fiber has a separate value, on any
 * worker. */
PIRN_EXPORT pirn_coroutine* pirn_self(void);
/** Returns 1 if it has ended or is null; otherwise 0. */
PIRN_EXPORT int pirn_done(const pirn_coroutine* coroutine);
/** Returns the caller's pointer, as given to pirn_create, pirn_reset or pirn_set_user. */
PIRN_EXPORT void* pirn_user(const pirn_coroutine* coroutine);
/** Replaces the pointer that pirn_user returns. */
PIRN_EXPORT void pirn_set_user(pirn_coroutine* coroutine, void* user);

/* ---- variables ---- */

/** A variable of which each coroutine has a separate value, a pointer that is null at first. Never negative. */
typedef int pirn_local;
/** The most variables of a process. */
#define PIRN_LOCAL_MAX 1024

/** Makes a variable, for the rest of the process. Where `end` is not null, it is called for each value that is not
 * null when its coroutine has ended, by return, pirn_destroy, pirn_reset or the end of the thread: on the coroutine's
 * stack, after its frames. It finds the other values that are left, and may set values, which end too; it must not
 * yield (-EPERM) or let a C++ exception out. The latest variable ends first. Any thread. -EINVAL: null; -EAGAIN: there
 * are PIRN_LOCAL_MAX. */
PIRN_EXPORT int pirn_local_create(pirn_local* result, void (*end)(void* value));
/** Returns the value in the coroutine that the caller runs in; null outside of any. O(1). */
PIRN_EXPORT void* pirn_local_get(pirn_local variable);
/** Sets the value in the coroutine that the caller runs in; does not end the earlier one. -EINVAL: no such variable;
 * -EPERM: outside of any coroutine; -ENOMEM. */
PIRN_EXPORT int pirn_local_set(pirn_local variable, void* value);

#ifdef __cplusplus
}
#endif
