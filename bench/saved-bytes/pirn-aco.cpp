// The image of a coroutine of libaco's interface, here pirn's, that has yielded in its outermost function: what is
// copied out when another coroutine takes the stack. Built with libaco's header and sources it measures libaco.
#include <aco.h>

#include "../harness.hpp"

#ifndef ACO_BENCH_IMPL
#define ACO_BENCH_IMPL "pirn-aco"
#define ACO_BENCH_NOTE "through aco.h, with its aco_t"
#endif

namespace {

void body() {
  for (volatile int i = 0;; i = i + 1) {
    aco_yield();
  }
}

}  // namespace

int main() {
  aco_thread_init(nullptr);
  aco_t* const main_co = aco_create(nullptr, nullptr, 0, nullptr, nullptr);
  aco_share_stack_t* const shared = aco_share_stack_new(0);
  aco_t* const one = aco_create(main_co, shared, 0, body, nullptr);
  aco_t* const other = aco_create(main_co, shared, 0, body, nullptr);
  for (int i = 0; i < 3; ++i) {
    aco_resume(one);
    aco_resume(other);
  }
  bench::row("saved-bytes", ACO_BENCH_IMPL, R"({"point":"aco_yield","of":"image"})", "B",
             static_cast<double>(one->save_stack.valid_sz + sizeof(aco_t)), ACO_BENCH_NOTE);
}
