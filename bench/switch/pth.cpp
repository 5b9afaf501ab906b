// GNU Pth's user-space contexts, without its scheduler: two functions switch to each other.
#include "../harness.hpp"

#include <pth.h>

namespace {

pth_uctx_t here;
pth_uctx_t there;
std::uint64_t others = 0;

[[noreturn, gnu::noinline]] void other(void* /*unused*/) {
  for (;;) {
    ++others;
    pth_uctx_switch(there, here);
  }
}

[[gnu::noinline]] void run(std::uint64_t n) {
  const std::uint64_t before = others;
  for (std::uint64_t i = 0; i < n / 2; ++i) {
    pth_uctx_switch(here, there);
  }
  bench::check(others - before == n / 2, "every switch reaches the other function");
}

}  // namespace

int main() {
  pth_init();
  bench::check(pth_uctx_create(&here) != 0 && pth_uctx_create(&there) != 0, "contexts are created");
  bench::check(pth_uctx_make(there, nullptr, bench::input("STACK"), nullptr, other, nullptr, nullptr) != 0,
               "the context gets a stack");
  bench::row("switch", "pth", bench::param("contexts", 2), "ns", bench::ns_per_operation(run));
}
