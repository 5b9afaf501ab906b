// Generators with frame<> that cannot have a stack; bounded_refused.py looks for the texts in the comments.
#include <cstdio>
#include <memory>

#include "pirn/coro/generator.hpp"

#if !defined(WHAT) || WHAT == 1

using numbers = pirn::generator<int, pirn::frame<>>;

void hanoi(pirn::generator<int>::yield& yield, int disks) {
  if (disks != 0) {
    hanoi(yield, disks - 1);
    yield(disks);
    hanoi(yield, disks - 1);
  }
}

int sum(int n) {
  int found = 0;
  // expect: a generator with frame<> cannot have a stack: hanoi\(.*\): it is recursive
  for (const int each : numbers([n](auto& yield) { hanoi(yield, n); })) {
    found += each;
  }
  // expect: a generator with frame<> cannot have a stack: printf: its code is not in this file
  for (const int each : numbers([n](auto& yield) { yield(std::printf("%d\n", n)); })) {
    found += each;
  }
  return found;
}

std::unique_ptr<numbers> elsewhere() {
  // expect: a generator with frame<> cannot have a stack: it is not a variable of the function that makes it
  return std::unique_ptr<numbers>(new numbers([](auto& yield) { yield(1); }));
}

numbers returned() {
  // expect: a generator with frame<> cannot have a stack: it is not a variable of the function that makes it
  return [](auto& yield) { yield(1); };
}

#else

// expect: undefined symbol: pirn_generator_frame_needs_the_compiler_plugin
int main() {
  int sum = 0;
  for (const int each : pirn::generator<int, pirn::frame<>>([](auto& yield) { yield(1); })) {
    sum += each;
  }
  return sum;
}

#endif
