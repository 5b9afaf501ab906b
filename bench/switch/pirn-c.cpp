// The C API: the main function resumes a coroutine, which yields: two switches, each in a function of the library.
#include "pirn/pirn.h"

#include "../harness.hpp"

namespace {

pirn_coroutine* coroutine = nullptr;

void* number(std::uint64_t value) { return reinterpret_cast<void*>(value); }

void* other(pirn_coroutine* self, void* /*first*/) {
  for (std::uint64_t others = 1;; ++others) {
    pirn_yield(self, number(others), nullptr);
  }
}

std::uint64_t sent_before = 0;

[[gnu::noinline]] void run(std::uint64_t n) {
  void* sent = number(sent_before);
  for (std::uint64_t i = 0; i < n / 2; ++i) {
    pirn_resume(coroutine, nullptr, &sent);
  }
  bench::check(reinterpret_cast<std::uint64_t>(sent) - sent_before == n / 2, "every switch reaches the other function");
  sent_before = reinterpret_cast<std::uint64_t>(sent);
}

}  // namespace

int main() {
  pirn_stack* stack = nullptr;
  bench::check(pirn_stack_create(&stack, bench::input("STACK")) == 0, "a stack");
  bench::check(pirn_create(&coroutine, stack, other, nullptr) == 0, "a coroutine");
  bench::row("switch", "pirn-c", bench::param("contexts", 2), "ns", bench::ns_per_operation(run));
  pirn_destroy(coroutine);
  pirn_stack_destroy(stack);
}
