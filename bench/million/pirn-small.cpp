// As pirn, on stacks of 2 KiB without a guard, which are checked at each suspension.
#include "million.hpp"
#include "pirn/fiber/expert/small.hpp"

int main() {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    bench::million([](auto body) { return pirn::spawn_small(body); }, "pirn-small", "checked stacks of 2 KiB");
  });
}
