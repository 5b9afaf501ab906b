// Fibers of an installed pirn: the compiled layers, and the flags that come with the target.
#include <pirn/fiber/runtime.hpp>

int main() {
  pirn::runtime runtime(pirn::runtime_options{.workers = 1});
  int sum = 0;
  for (int i = 1; i <= 3; ++i) {
    runtime
        .spawn([&sum, i] {
          pirn::this_fiber::yield();
          sum += i;
        })
        .join();
  }
  return sum == 6 ? 0 : 1;
}
