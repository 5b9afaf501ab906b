// Fibers on stacks of 2 KiB without a guard, which are checked at each suspension.
#include "pirn/fiber/expert/small.hpp"
#include "waiting_fibers.hpp"

int main() {
  bench::memory::waiting_fibers::measure([](auto body) { return pirn::spawn_small(body); }, "pirn-small", 2700,
                                         "stacks of 2 KiB, checked at each suspension");
}
