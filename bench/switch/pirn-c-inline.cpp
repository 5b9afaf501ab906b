// The inlined switch of C: pirn/inline.h alone. The two functions are in pirn-c-inline.c, compiled as C.
#include "pirn-c-inline.h"

#include "../harness.hpp"

namespace {

std::uint64_t sent_before = 0;

void run(std::uint64_t n) {
  const std::uint64_t sent = switch_in_c(sent_before, n / 2);
  bench::check(sent - sent_before == n / 2, "every switch reaches the other function");
  sent_before = sent;
}

}  // namespace

int main() {
  bench::check(begin_in_c(bench::input("STACK")) == 0, "a stack");
  bench::row("switch", "pirn-c-inline", bench::param("contexts", 2), "ns", bench::ns_per_operation(run));
}
