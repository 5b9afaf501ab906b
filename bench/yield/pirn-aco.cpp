// Coroutines of libaco's interface, here pirn's: each resumes the next one, as a scheduler of one thread would. A yield
// is a switch to the main coroutine and one to the next. Built with libaco's header and sources it measures libaco.
#include <aco.h>

#include <vector>

#include "../harness.hpp"

#ifndef ACO_BENCH_IMPL
#define ACO_BENCH_IMPL "pirn-aco"
#define ACO_BENCH_NOTE "through aco.h, each on a stack of its own"
#endif

namespace {

void count_yields() {
  for (std::uint64_t& yields = *static_cast<std::uint64_t*>(aco_get_arg());; ++yields) {
    aco_yield();
  }
}

}  // namespace

int main() {
  const std::uint64_t fibers = bench::input("FIBERS");
  aco_thread_init(nullptr);
  aco_t* const main_co = aco_create(nullptr, nullptr, 0, nullptr, nullptr);
  std::uint64_t yields = 0;
  std::vector<aco_t*> all(fibers);
  for (aco_t*& each : all) {
    each = aco_create(main_co, aco_share_stack_new(bench::input("STACK")), 0, count_yields, &yields);
    aco_resume(each);  // to its first yield
  }
  const double ns = bench::ns_per_operation(
      [&](std::uint64_t n) {
        const std::uint64_t before = yields;
        for (std::uint64_t k = 0; k < n / fibers; ++k) {
          for (aco_t* const each : all) {
            aco_resume(each);
          }
        }
        bench::check(yields - before == n, "every coroutine yields as often as asked");
      },
      fibers);
  bench::row("yield", ACO_BENCH_IMPL, bench::param("fibers", fibers), "ns", ns, ACO_BENCH_NOTE);
}
