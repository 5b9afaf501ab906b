// The code that is woven into random programs: a real switch to another context, which uses every register and comes
// back.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "pirn/context/arch.hpp"

namespace arch = pirn::PIRN_ABI::arch;

namespace {

alignas(16) char stack[65536];
arch::context program;
arch::context companion;
std::uint64_t switches;

std::uint64_t mixed(std::uint64_t a) { return (a * 0x9e3779b97f4a7c15U) ^ (a >> 29U); }

[[noreturn]] void keep_busy(arch::word /*first*/, arch::word /*second*/) {
  std::uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9;
  for (std::uint64_t turn = 1;; ++turn) {
    a = mixed(a), b = mixed(b), c = mixed(c), d = mixed(d), e = mixed(e), f = mixed(f), g = mixed(g), h = mixed(h),
    i = mixed(i);
    arch::word one = a + b + c, two = d + e + f + g + h + i;
    arch::switch_to(companion, program, one, two);
    if (turn != switches - 1) {
      std::puts("the other context has lost its count");
      std::abort();
    }
  }
}

}  // namespace

extern "C" PIRN_NONE __attribute__((noinline)) void weave() {
  if (switches++ == 0) {
    companion = arch::prepare(stack + sizeof stack, keep_busy);
  }
  arch::word one = 0, two = 0;
  arch::switch_to(program, companion, one, two);
}
