// swapcontext of glibc: all registers lie in a ucontext_t. What the kernel reads of it, the signal mask, is not
// counted.
#include <ucontext.h>

#include <vector>

#include "traced.hpp"

namespace {

ucontext_t here;
ucontext_t there;

void body() {
  for (volatile int i = 0;; i = i + 1) {
    swapcontext(&there, &here);
  }
}

}  // namespace

int main() {
  std::vector<char> stack(65536);
  getcontext(&there);
  there.uc_stack.ss_sp = stack.data();
  there.uc_stack.ss_size = stack.size();
  makecontext(&there, body, 0);
  for (int i = 0; i < 3; ++i) {
    swapcontext(&here, &there);
    bench::suspended("swapcontext", {{stack.data(), stack.data() + stack.size()}, {&there, &there + 1}});
  }
  bench::image_row("ucontext", "swapcontext", sizeof(ucontext_t), "of the ucontext_t");
}
