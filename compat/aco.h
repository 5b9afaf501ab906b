/* The API of libaco 1.2.4, served by pirn: programs written for it build unchanged with this header and -lpirn_compat.
 * docs/porting.md says what differs and why.
 *
 * A coroutine runs on a share stack. While another coroutine of the same stack runs, its live bytes lie in an image
 * that belongs to it. A coroutine that is alone on its stack is never copied. It yields to its main coroutine, which
 * stands for the thread's stack. All of these belong to one thread: the thread that called aco_thread_init.
 *
 * Macros that a program may define, the same ones everywhere:
 *   ACO_CONFIG_SHARE_FPU_MXCSR_ENV   coroutines share the floating-point control words (mxcsr, x87; fpcr), which is
 *                                    faster; without it each has its own. One library serves both.
 *   ACO_USE_VALGRIND                 tells valgrind about share stacks (needs its headers). As long as only one
 *                                    coroutine uses each share stack, memcheck has nothing false to say.
 *   ACO_USE_ASAN                     gives aco_attr_no_asan its meaning. AddressSanitizer is told about switches in any
 *                                    case, where a program has it.
 *
 * Exhausted memory and misuse abort the process, after a line on stderr with the reason.
 */
#ifndef PIRN_COMPAT_ACO_H
#define PIRN_COMPAT_ACO_H

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef ACO_USE_VALGRIND
#include <valgrind/valgrind.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define ACO_VERSION_MAJOR 1
#define ACO_VERSION_MINOR 2
#define ACO_VERSION_PATCH 4

/* The places in `reg` of a suspended coroutine's state: where it continues, its stack and frame pointer there, and its
 * control words, as aco_save_fpucw_mxcsr stores them. */
#define ACO_REG_IDX_RETADDR 0
#define ACO_REG_IDX_SP 1
#define ACO_REG_IDX_BP 2
#define ACO_REG_IDX_FPU 3
#if defined(__i386__)
#define ACO_REG_WORDS 5
#elif defined(__x86_64__) || defined(__aarch64__)
#define ACO_REG_WORDS 4
#else
#error "pirn: aco.h supports x86-64, i386 and AArch64"
#endif

/* For the linker each name begins with pirn_. So a program that was compiled with libaco's original aco.h, whose
 * contents differ, does not link. (A quoted include finds the header in the program's folder first.) */
#define PIRN_ACO_NAME(name) __asm__("pirn_" #name)
#if defined(ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
#define ACO_OF_ENV(name) __asm__("pirn_" #name "_shared")
#else
#define ACO_OF_ENV(name) PIRN_ACO_NAME(name)
#endif

/* The image of a coroutine, and the counts of its copies. */
typedef struct {
  void* ptr;         /* valid_sz bytes; the first is the copy of the byte at reg[ACO_REG_IDX_SP] */
  size_t sz;         /* bytes of the buffer, once an image did not fit beside the coroutine */
  size_t valid_sz;   /* bytes of the frames that were copied last */
  size_t max_cpsz;   /* the largest valid_sz so far */
  size_t ct_save;    /* copies out of the share stack */
  size_t ct_restore; /* copies back */
} aco_save_stack_t;

struct aco_s;
typedef struct aco_s aco_t;

/* A stack for any number of coroutines. */
typedef struct {
  void* ptr; /* its lowest byte */
  size_t sz;
  void* align_highptr;  /* the end of its usable bytes */
  void* align_retptr;   /* the stack pointer of a fresh coroutine */
  size_t align_validsz; /* bytes that were copied in for the owner, and one word */
  size_t align_limit;   /* the most bytes that a coroutine may use */
  aco_t* owner;         /* the coroutine whose frames are there, or null */
  char guard_page_enabled;
  void* real_ptr; /* the mapping with its guard page, where there is one */
  size_t real_sz;
  unsigned long valgrind_stk_id;
} aco_share_stack_t;

typedef void (*aco_cofuncp_t)(void);

/* A coroutine. A program may read all of it, and assign `arg`, and `fp` before aco_reset. */
struct aco_s {
  __extension__ union {
    void* reg[ACO_REG_WORDS];
    __extension__ struct {
      void* reg_of_frame[3];
#if defined(__aarch64__)
      uint32_t fpcr;
      char is_end; /* whether it has called aco_exit */
      unsigned char kept;
#else
      uint16_t x87_control;
      char is_end; /* whether it has called aco_exit */
      unsigned char kept;
      uint32_t mxcsr;
#endif
    };
  };
  aco_t* main_co; /* null: it is a main coroutine */
  void* arg;
  aco_cofuncp_t fp;
  aco_save_stack_t save_stack;
  aco_share_stack_t* share_stack;
};

#define aco_likely(x) (__builtin_expect(!!(x), 1))
#define aco_unlikely(x) (__builtin_expect(!!(x), 0))

/* Prints the text and aborts. The assertions call it. */
extern void aco_assert_failed(const char* what) PIRN_ACO_NAME(aco_assert_failed)
    __attribute__((__noreturn__, __cold__));
#define ACO_TEXT(x) #x
#define ACO_LINE(line) ACO_TEXT(line)
#define ACO_HERE __FILE__ ":" ACO_LINE(__LINE__) ": "
#define aco_assert(EX) (aco_likely(EX) ? (void)0 : aco_assert_failed(ACO_HERE "assertion failed: " #EX))
#define aco_assertptr(ptr) (aco_likely((ptr) != NULL) ? (void)0 : aco_assert_failed(ACO_HERE #ptr " is null"))
#define aco_assertalloc_bool(b)                                                              \
  do {                                                                                       \
    if (aco_unlikely(!(b))) aco_assert_failed(ACO_HERE "memory exhausted: " #b " is false"); \
  } while (0)
#define aco_assertalloc_ptr(ptr)                                                                       \
  do {                                                                                                 \
    if (aco_unlikely((ptr) == NULL)) aco_assert_failed(ACO_HERE "memory exhausted: " #ptr " is null"); \
  } while (0)

/* Allocates `sz` bytes into the pointer `ptr`, which has any type. */
#define aco_mem_new(ptr, sz)             \
  do {                                   \
    (ptr) = (__typeof__(ptr))malloc(sz); \
    aco_assertalloc_ptr(ptr);            \
  } while (0)

/* For a function of the program that copies stacks. */
#ifdef aco_attr_no_asan
#error "aco_attr_no_asan is a name of aco.h"
#endif
#if defined(ACO_USE_ASAN) && defined(__SANITIZE_ADDRESS__)
#define aco_attr_no_asan __attribute__((__no_sanitize_address__))
#elif defined(ACO_USE_ASAN) && defined(__has_feature)
#if __has_feature(address_sanitizer)
#define aco_attr_no_asan __attribute__((__no_sanitize_address__))
#endif
#endif
#ifndef aco_attr_no_asan
#define aco_attr_no_asan
#endif

/* Aborts if this machine is not the one that the library was built for. */
extern void aco_runtime_test(void) PIRN_ACO_NAME(aco_runtime_test);

/* Must be called first in each thread. The thread's control words become those of the coroutines that it creates.
 * `last_word_co_fp` is called when a coroutine returns instead of calling aco_exit, before the process aborts; null
 * leaves it to the library, which prints a line. */
extern void aco_thread_init(aco_cofuncp_t last_word_co_fp) PIRN_ACO_NAME(aco_thread_init);

/* Switches without copying: `to_co` must be a main coroutine, or the owner of its share stack. Returns when a coroutine
 * switches back, and which one that is. */
extern void* acosw(aco_t* from_co, aco_t* to_co) ACO_OF_ENV(acosw);

/* Stores the control words of the caller. */
extern void aco_save_fpucw_mxcsr(void* p) PIRN_ACO_NAME(aco_save_fpucw_mxcsr);

/* The return address of a coroutine, and the function called then. */
extern void aco_funcp_protector_asm(void) PIRN_ACO_NAME(aco_funcp_protector_asm);
extern void aco_funcp_protector(void) PIRN_ACO_NAME(aco_funcp_protector) __attribute__((__noreturn__));

/* Makes a share stack: 0 stands for 2 MiB, 4096 is the minimum. With a guard its size is a multiple of the page size,
 * and the page below it faults when it is written to. */
extern aco_share_stack_t* aco_share_stack_new(size_t sz) PIRN_ACO_NAME(aco_share_stack_new);
extern aco_share_stack_t* aco_share_stack_new2(size_t sz, char guard_page_enabled) PIRN_ACO_NAME(aco_share_stack_new2);
/* Destroys a share stack. None of its coroutines may be running, or wait for one that it has resumed. Suspended ones
 * lose their frames: they can be destroyed, but not resumed. */
extern void aco_share_stack_destroy(aco_share_stack_t* sstk) PIRN_ACO_NAME(aco_share_stack_destroy);

/* Makes a coroutine that will run `fp`, or, from nulls, a main coroutine. `save_stack_sz` is the smallest size of a
 * buffer for its image, 0 stands for 64; the buffer is made when an image does not fit beside the coroutine. */
extern aco_t* aco_create(aco_t* main_co, aco_share_stack_t* share_stack, size_t save_stack_sz, aco_cofuncp_t fp,
                         void* arg) PIRN_ACO_NAME(aco_create);

/* The coroutine that runs in this thread. */
/* NOLINTNEXTLINE(bugprone-dynamic-static-initializers): it is only declared */
extern __thread aco_t* aco_gtls_co PIRN_ACO_NAME(aco_gtls_co);

/* Begins or continues `resume_co`, from its main coroutine. Neither that main coroutine nor one that waits for it may
 * be on its share stack. Takes time linear in the sizes of the two images if another coroutine owns the share stack. */
extern void aco_resume(aco_t* resume_co) ACO_OF_ENV(aco_resume);

/* Yields to the main coroutine. The functions whose names end in 1 take the calling coroutine as an argument. */
extern void aco_yield(void) ACO_OF_ENV(aco_yield);
extern void aco_yield1(aco_t* yield_co) ACO_OF_ENV(aco_yield1);

/* Ends the coroutine, which must call this instead of returning. */
extern void aco_exit(void) ACO_OF_ENV(aco_exit) __attribute__((__noreturn__));
extern void aco_exit1(aco_t* co) ACO_OF_ENV(aco_exit1) __attribute__((__noreturn__));

#define aco_get_arg() (aco_gtls_co->arg)
#define aco_get_co() ((void)0, aco_gtls_co)
#define aco_co() ((void)0, aco_gtls_co)
#define aco_is_main_co(co) ((co)->main_co == NULL)

/* Ends a coroutine that is suspended or has ended, without cleaning up its stack. Or frees a main coroutine, when none
 * of its coroutines is running. */
extern void aco_destroy(aco_t* co) PIRN_ACO_NAME(aco_destroy);

/* As aco_destroy, but the coroutine can be resumed again, to begin with its `fp` and `arg`, which may be assigned
 * before. It keeps its buffer, its statistics and its stack. */
extern void aco_reset(aco_t* co) PIRN_ACO_NAME(aco_reset);

/* Beyond libaco: a variable of which each coroutine has a separate value, a pointer that is null at first. */
typedef int aco_local_t;
/* Makes one, for the rest of the process; at most 1024. Where `end` is not null, it is called for each value that is
 * not null when its coroutine calls aco_exit, and finds the other values that are left; or when it is destroyed or
 * reset, by the caller. The latest variable ends first. It must not yield. Any thread. */
extern aco_local_t aco_local_new(void (*end)(void* value)) PIRN_ACO_NAME(aco_local_new);
/* The value in the coroutine that the caller runs in, which may be a main coroutine; null outside of any. O(1). */
extern void* aco_local_get(aco_local_t variable) PIRN_ACO_NAME(aco_local_get);
/* Sets it. Does not end the earlier value. */
extern void aco_local_set(aco_local_t variable, void* value) PIRN_ACO_NAME(aco_local_set);

#ifdef ACO_USE_VALGRIND
static __inline__ aco_share_stack_t* aco_share_stack_told(aco_share_stack_t* sstk) {
  sstk->valgrind_stk_id = VALGRIND_STACK_REGISTER(sstk->ptr, (char*)sstk->ptr + sstk->sz);
  return sstk;
}
static __inline__ void aco_share_stack_untold(aco_share_stack_t* sstk) {
  VALGRIND_STACK_DEREGISTER(sstk->valgrind_stk_id);
  aco_share_stack_destroy(sstk);
}
#define aco_share_stack_new(sz) aco_share_stack_told(aco_share_stack_new(sz))
#define aco_share_stack_new2(sz, guard_page_enabled) aco_share_stack_told(aco_share_stack_new2(sz, guard_page_enabled))
#define aco_share_stack_destroy(sstk) aco_share_stack_untold(sstk)
#endif

#ifdef __cplusplus
}
#endif

#endif
