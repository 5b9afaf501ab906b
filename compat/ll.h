/* A drop-in for ll.h of usched: threads on P native threads, those of a group on the same one, so that they are
   scheduled without locking. Only threads of the same native thread may wake each other. */
#ifndef PIRN_COMPAT_LL_H
#define PIRN_COMPAT_LL_H
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct ll_thread;

/* Makes proc_nr native threads, for thread_nr threads in all. Returns 0. There is one such scheduler at a time. */
int ll_init(int proc_nr, int thread_nr);
/* Starts the native threads. Returns 0, or an errno with a minus if one could not be started: its threads do not run.
 */
int ll_start(void);
/* Waits until on no native thread any thread is ready, then for the native threads, and frees everything. */
void ll_fini(void);

/* Makes a thread that will run f(arg) on native thread `group` modulo P. NULL: no memory. */
struct ll_thread* ll_thread_init(void (*f)(void*), void* arg, int group);
/* Waits for an ll_wake, in the running thread; one that came before counts. */
void ll_wait(void);
/* Lets an ll_wait of `t` return, the present one or one to come. From threads of the same native thread. */
void ll_wake(struct ll_thread* t);
/* Gives the buffer of the running thread back, which is about to end. */
void ll_done(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
