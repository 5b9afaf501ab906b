// glibc's swapcontext, which also saves the signal mask by a system call; the values go through memory.
#include <ucontext.h>

#include "transfer.hpp"

namespace {

ucontext_t here;
ucontext_t there;
bench::two mail;

[[gnu::noinline]] void other() {
  for (;;) {
    mail = bench::step(mail);
    swapcontext(&there, &here);
  }
}

[[gnu::noinline]] bench::two round_trips(std::uint64_t count, bench::two values) {
  for (std::uint64_t i = 0; i < count; ++i) {
    mail = values;
    swapcontext(&here, &there);
    values = bench::step(mail);
  }
  return values;
}

}  // namespace

int main() {
  std::vector<std::byte> stack(bench::input("STACK"));
  bench::check(getcontext(&there) == 0, "a context is made");
  there.uc_stack.ss_sp = stack.data();
  there.uc_stack.ss_size = stack.size();
  makecontext(&there, other, 0);
  bench::transfer_row("ucontext", round_trips, "the signal mask is saved by a system call");
}
