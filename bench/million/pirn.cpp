// pirn's fibers on one worker, each on a guarded stack.
#include "million.hpp"

int main() {
  pirn::runtime runtime({.workers = 1, .stack_size = bench::input("STACK")});
  runtime.run([] { bench::million([](auto body) { return pirn::spawn(body); }, "pirn", "guarded stacks of 64 KiB"); });
}
