// Implements compat/rr.h: a scheduler whose threads may be woken from any native thread, and one without locks.
#include "rr.h"

#include "compat/usched_scheduler.hpp"

namespace {

template <bool remote>
class round_robin {
 public:
  using thread = typename pirn_compat::scheduler<remote>::thread;

  int init(int natives, int threads) {
    threads_ = threads;
    return scheduler_.init(natives);
  }
  void set_affinity(int (*cpu_of)(int)) { scheduler_.set_affinity(cpu_of); }
  void set_preemption(int sig, long us, const char* begin, const char* end) {
    scheduler_.set_preemption(sig, us, begin, end);
  }
  int start() { return scheduler_.start(); }
  void fini() { scheduler_.fini(); }
  rr_thread* make(void (*f)(void*), void* argument) {
    return reinterpret_cast<rr_thread*>(scheduler_.make(f, argument, scheduler_.spread(threads_)));
  }
  void wait() { scheduler_.wait(); }
  void wake(rr_thread* who) { scheduler_.wake(*reinterpret_cast<thread*>(who)); }
  void done() { scheduler_.done(); }

 private:
  pirn_compat::scheduler<remote> scheduler_;
  int threads_ = 0;
};

constinit round_robin<true> shared;
constinit round_robin<false> single;

}  // namespace

extern "C" {

int rr_init(int proc_nr, int thread_nr) { return shared.init(proc_nr, thread_nr); }
void rr_affinity(int (*cpu_of)(int native)) { shared.set_affinity(cpu_of); }
void rr_preempt_in(int sig, long us, const char* begin, const char* end) { shared.set_preemption(sig, us, begin, end); }
int rr_start() { return shared.start(); }
void rr_fini() { shared.fini(); }
rr_thread* rr_thread_init(void (*f)(void*), void* arg) { return shared.make(f, arg); }
void rr_wait() { shared.wait(); }
void rr_wake(rr_thread* t) { shared.wake(t); }
void rr_done() { shared.done(); }

// The names that rr.h uses where SINGLE_THREAD is defined.
#pragma GCC visibility push(default)
int rr_init_single_thread(int proc_nr, int thread_nr) { return single.init(proc_nr, thread_nr); }
void rr_affinity_single_thread(int (*cpu_of)(int native)) { single.set_affinity(cpu_of); }
void rr_preempt_in_single_thread(int sig, long us, const char* begin, const char* end) {
  single.set_preemption(sig, us, begin, end);
}
int rr_start_single_thread() { return single.start(); }
void rr_fini_single_thread() { single.fini(); }
rr_thread* rr_thread_init_single_thread(void (*f)(void*), void* arg) { return single.make(f, arg); }
void rr_wait_single_thread() { single.wait(); }
void rr_wake_single_thread(rr_thread* t) { single.wake(t); }
void rr_done_single_thread() { single.done(); }
#pragma GCC visibility pop

}  // extern "C"
