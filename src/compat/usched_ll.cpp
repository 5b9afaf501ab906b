// Implements compat/ll.h: each group of threads stays on one native thread, which no other thread wakes.
#include "ll.h"

#include "compat/usched_scheduler.hpp"

namespace {

using scheduler = pirn_compat::scheduler<false>;
constinit scheduler local;

}  // namespace

extern "C" {

int ll_init(int proc_nr, int) { return local.init(proc_nr); }
void ll_affinity(int (*cpu_of)(int native)) { local.set_affinity(cpu_of); }
void ll_preempt_in(int sig, long us, const char* begin, const char* end) { local.set_preemption(sig, us, begin, end); }
int ll_start() { return local.start(); }
void ll_fini() { local.fini(); }
ll_thread* ll_thread_init(void (*f)(void*), void* arg, int group) {
  return reinterpret_cast<ll_thread*>(local.make(f, arg, group));
}
void ll_wait() { local.wait(); }
void ll_wake(ll_thread* t) { local.wake(*reinterpret_cast<scheduler::thread*>(t)); }
void ll_done() { local.done(); }

}  // extern "C"
