/* A drop-in for rr.h of usched: threads on P native threads. Each runs the threads assigned to it, the most recently
   readied first. With SINGLE_THREAD defined, and P 1, without locking: then only its threads may call rr_wake. */
#ifndef PIRN_COMPAT_RR_H
#define PIRN_COMPAT_RR_H
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#ifdef SINGLE_THREAD
#define PIRN_RR_NAME(name) __asm__(#name "_single_thread")
#else
#define PIRN_RR_NAME(name)
#endif

struct rr_thread;

/* Makes proc_nr native threads, for thread_nr threads in all. Returns 0. Only one such scheduler may exist at a
   time. */
int rr_init(int proc_nr, int thread_nr) PIRN_RR_NAME(rr_init);
/* Before rr_start, beyond usched: native thread `i` runs on CPU cpu_of(i) only, or where cpu_of returns a negative
   number on any. After rr_init it is NULL: on any. cpu_of is called in rr_start. */
void rr_affinity(int (*cpu_of)(int native)) PIRN_RR_NAME(rr_affinity);
/* Before rr_start, beyond usched: each native thread preempts its threads as usched_preempt says, by the signal `sig`
   after each `us` microseconds of its CPU time, 0 for never. A thread is preempted if another one could run. It runs
   again when no thread is ready, after those that were preempted before it. The macro needs usched.h. */
#define rr_preempt(sig, us) rr_preempt_in((sig), (us), __start_usched_preemptible, __stop_usched_preemptible)
void rr_preempt_in(int sig, long us, const char* begin, const char* end) PIRN_RR_NAME(rr_preempt_in);
/* Starts the native threads. Returns 0, or a negated errno if one could not be started, may not run on the CPU that was
   chosen, or cannot preempt: its threads do not run. */
int rr_start(void) PIRN_RR_NAME(rr_start);
/* Waits until all threads have ended, then for the native threads, and frees everything. */
void rr_fini(void) PIRN_RR_NAME(rr_fini);

/* Makes a thread that will run f(arg), on the native threads in turn, in runs of at least 128. NULL: no memory. */
struct rr_thread* rr_thread_init(void (*f)(void*), void* arg) PIRN_RR_NAME(rr_thread_init);
/* Waits for an rr_wake of the running thread; an earlier one counts. */
void rr_wait(void) PIRN_RR_NAME(rr_wait);
/* Lets the present or next rr_wait of `t` return. Any thread may call it. */
void rr_wake(struct rr_thread* t) PIRN_RR_NAME(rr_wake);
/* Frees the buffer of the running thread, which is about to end. */
void rr_done(void) PIRN_RR_NAME(rr_done);

#undef PIRN_RR_NAME

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
