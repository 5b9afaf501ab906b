/* A drop-in for ll.h of usched: threads on P native threads. The threads of a group are on the same one, so they are
   scheduled without locking. Only threads of the same native thread may wake each other. */
#ifndef PIRN_COMPAT_LL_H
#define PIRN_COMPAT_LL_H
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct ll_thread;

/* Makes proc_nr native threads, for thread_nr threads in all. Returns 0. Only one such scheduler may exist at a
   time. */
int ll_init(int proc_nr, int thread_nr);
/* Before ll_start, beyond usched: native thread `i` runs on CPU cpu_of(i) only, or where cpu_of returns a negative
   number on any. After ll_init it is NULL: on any. cpu_of is called in ll_start. */
void ll_affinity(int (*cpu_of)(int native));
/* Before ll_start, beyond usched: each native thread preempts its threads as usched_preempt says, by the signal `sig`
   after each `us` microseconds of its CPU time, 0 for never. A thread is preempted if another one could run. It runs
   again when no thread is ready, after those that were preempted before it. The macro needs usched.h. */
#define ll_preempt(sig, us) ll_preempt_in((sig), (us), __start_usched_preemptible, __stop_usched_preemptible)
void ll_preempt_in(int sig, long us, const char* begin, const char* end);
/* Starts the native threads. Returns 0, or a negated errno if one could not be started, may not run on the CPU that was
   chosen, or cannot preempt: its threads do not run. */
int ll_start(void);
/* Waits until no native thread has a ready thread, then for the native threads, and frees everything. */
void ll_fini(void);

/* Makes a thread that will run f(arg) on native thread `group` modulo P. NULL: no memory. */
struct ll_thread* ll_thread_init(void (*f)(void*), void* arg, int group);
/* Waits for an ll_wake of the running thread; an earlier one counts. */
void ll_wait(void);
/* Lets the present or next ll_wait of `t` return. Only for threads of the same native thread. */
void ll_wake(struct ll_thread* t);
/* Frees the buffer of the running thread, which is about to end. */
void ll_done(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
