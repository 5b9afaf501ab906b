// A function that is listed in functions.txt, and switches.
#include <pirn/fiber/runtime.hpp>

__attribute__((noinline)) void count_up(int& sum, int by) {
  pirn::this_fiber::yield();
  sum += by;
}

int main() {
  pirn::runtime runtime(pirn::runtime_options{.workers = 1});
  int sum = 0;
  for (int i = 1; i <= 3; ++i) {
    runtime.spawn([&sum, i] { count_up(sum, i); }).join();
  }
  return sum == 6 ? 0 : 1;
}
