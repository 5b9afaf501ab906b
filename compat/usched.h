/* A drop-in for usched, the dispatcher of threads that take turns on one native stack: programs written for it build
   against this header unchanged and link with -lpirn_compat -lpthread, with any options. docs/porting.md says more.

   A dispatcher belongs to the OS thread that calls usched_run; a process may have any number. Nothing here is
   thread-safe unless the callbacks make it so. */
#ifndef PIRN_COMPAT_USCHED_H
#define PIRN_COMPAT_USCHED_H
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct ustack;

/* A dispatcher. Zero it and set the callbacks before usched_run; the rest is the library's. */
struct usched {
  void* s_anchor; /* The start of the outermost frames of its threads, from the first usched_run on. */
  void* s_buf;    /* The data of usched_run on its stack. */
  /* Returns the thread that runs next: a new thread of this dispatcher, or a blocked one, whose stack is in its buffer
     by now; or NULL to let usched_run return. It may wait. It is called on the native stack, not on behalf of any
     thread. */
  struct ustack* (*s_next)(struct usched*);
  /* Returns a buffer of at least the given number of bytes, of any alignment. Without one it must not return: it
     may call ustack_abort, or longjmp to an outer frame of the thread, which then continues, or out of the outermost
     usched_run. But it may return NULL if it is asked for less than u_len of the running thread: the buffer stays. */
  void* (*s_alloc)(struct usched*, int);
  /* Takes back a buffer, with its length. Either it is too small: one of s_alloc's or the buffer given to
     ustack_init. Or it is one of s_alloc's of more than 4 KiB, and the last four times that its thread blocked, less
     than a quarter of it was needed; by then s_alloc has returned a smaller one. */
  void (*s_free)(struct usched*, void*, int);
  /* NULL, or returns whether the running thread is to block now. Called as usched_preempt says, on its stack. */
  int (*s_preempt)(struct usched*, struct ustack*);
};

/* A thread: may be a part of a user's structure. It must not move until it has ended. */
struct ustack {
  struct usched* u_sched;
  void* u_bottom; /* NULL until it begins; then the end of its outermost frame. */
  void* u_top;    /* While it is blocked: where its innermost frame begins. */
  void*
      u_stack; /* The buffer, or NULL. The last one stays until the program frees it, even when the thread has ended. */
  int u_len;   /* Length of the buffer. */
  void* u_cont; /* While it is blocked: where it continues, inside the buffer. */
  void (*u_f)(void* arg);
  void* u_arg;
};

/* Runs threads until s_next returns NULL. While any thread of `s` is blocked, it may be called again only where it was
   called before or less deep in the stack of the same OS thread; otherwise it ends the program with a message. */
void usched_run(struct usched* s);
/* Makes `u` a thread that will run f(arg). `stack` may be NULL, or a buffer of `len` bytes for the used part of its
   stack while it is blocked; if it is too small, it is given to s_free. */
void ustack_init(struct ustack* u, struct usched* s, void (*f)(void*), void* arg, void* stack, int len);
/* Blocks the running thread: returns when s_next has returned it again. The caller must be on the stack of its native
   thread: another stack ends the program with a message. But a stack that lies in a frame of the running thread cannot
   be distinguished from that, and the frames below it are lost. */
void ustack_block(void);
void usched_block(void);
/* Ends the running thread: its frames are dropped without being unwound. */
void ustack_abort(void);
void usched_abort(void);
/* Returns the running thread. Ends the program with a message if none runs. */
struct ustack* ustack_self(void);

/* Beyond usched: a variable of which each thread has a separate value, a pointer that is null at first. */
typedef int ustack_local;
/* Makes one, for the rest of the process; -EAGAIN: there are 1024. Where `end` is not NULL, it is called for each value
   that is not null when its thread has ended, on the native stack, on behalf of no thread; for a thread that was not
   run to its end, when ustack_init makes another one there. The latest variable ends first. The ustack must exist until
   its function has returned. Any thread. */
ustack_local ustack_local_create(void (*end)(void* value));
/* Returns the value in the running thread. Ends the program with a message if none runs. O(1), with a lock. */
void* ustack_local_get(ustack_local variable);
/* Sets it; does not end the earlier value. Returns 0, -EINVAL (no such variable) or -ENOMEM. */
int ustack_local_set(ustack_local variable, void* value);

/* Marks a function as one in which a thread may be preempted. It must not be called by code that holds a lock or is not
   reentrant, such as a comparison function that malloc's caller passes on. What it calls is not marked with it. */
#define USCHED_PREEMPTIBLE __attribute__((__section__("usched_preemptible"), __noinline__))
/* Begins to preempt the threads of the calling OS thread, after each `us` microseconds of its CPU time; 0 ends that,
   and must before the OS thread ends. The handler of `sig`, which is replaced, asks the dispatcher's s_preempt about
   the running thread, and blocks it as ustack_block does, if the innermost function that was interrupted is marked.
   Elsewhere, in malloc or in s_next for instance, another thread must not run: there, on another stack and in a fiber
   the question waits for usched_preemption_point, or for the next signal. A thread that is preempted has the kernel's
   signal frame in its buffer, up to 4 KiB. Returns 0, or a negative error: -ENOTSUP under sanitizers and on other
   processors than x86 and AArch64, or what sigaction and timer_create refuse. */
#define usched_preempt(sig, us) usched_preempt_in((sig), (us), __start_usched_preemptible, __stop_usched_preemptible)
int usched_preempt_in(int sig, long us, const char* begin, const char* end);
/* Asks s_preempt, and blocks the running thread if it says so, if a signal came where the thread could not be
 * preempted. */
void usched_preemption_point(void);

#pragma GCC visibility pop
/* The section's bounds, which the linker defines where a function is marked. */
/* NOLINTBEGIN(bugprone-dynamic-static-initializers): they are declarations */
extern const char __start_usched_preemptible[] __attribute__((__weak__, __visibility__("hidden")));
extern const char __stop_usched_preemptible[] __attribute__((__weak__, __visibility__("hidden")));
/* NOLINTEND(bugprone-dynamic-static-initializers) */
#ifdef __cplusplus
}
#endif

#endif
