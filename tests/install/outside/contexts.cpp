// Two contexts pass a number to and fro, with only the headers of pirn.
#include <pirn/context/arch.hpp>

namespace arch = pirn::arch;

namespace {
arch::context outside;
arch::context inside;
alignas(16) char stack[64 * 1024];

[[noreturn]] void entry(arch::word first, arch::word second) {
  for (;;) {
    first += second;
    arch::switch_to(inside, outside, first, second);
  }
}
}  // namespace

int main() {
  inside = arch::prepare(stack + sizeof stack, &entry);
  arch::word first = 20;
  arch::word second = 2;
  arch::switch_to(outside, inside, first, second);
  arch::switch_to(outside, inside, first, second);
  return first == 24 && second == 2 && __cplusplus == 202002L ? 0 : 1;
}
