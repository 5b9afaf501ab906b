// Two functions on two stacks switch to each other: pirn/context alone.
#include "pirn/context/arch.hpp"

#include <memory>

#include "../harness.hpp"

namespace {

using pirn::arch::word;

pirn::arch::context here;
pirn::arch::context there;

[[noreturn, gnu::noinline]] void other(word, word second) {
  for (word others = 1;; ++others) {
    word sent = others;
    pirn::arch::switch_to(there, here, sent, second);
  }
}

word sent_before = 0;

[[gnu::noinline]] void run(std::uint64_t n) {
  word sent = sent_before;
  word unused = 0;
  for (std::uint64_t i = 0; i < n / 2; ++i) {
    pirn::arch::switch_to(here, there, sent, unused);
  }
  bench::check(sent - sent_before == n / 2, "every switch reaches the other function");
  sent_before = sent;
}

}  // namespace

int main() {
  const std::uint64_t size = bench::input("STACK");
  const auto stack = std::make_unique_for_overwrite<std::byte[]>(size);
  there = pirn::arch::prepare(stack.get() + size, other);
  bench::row("switch", "pirn", bench::param("contexts", 2), "ns", bench::ns_per_operation(run));
}
