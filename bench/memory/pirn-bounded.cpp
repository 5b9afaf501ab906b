// Fibers on stacks of the size that the compiler plugin proves.
#include "pirn/fiber/expert/bounded.hpp"
#include "waiting_fibers.hpp"

int main() {
  bench::memory::waiting_fibers::measure([](auto body) { return pirn::spawn_bounded(body); }, "pirn-bounded", 750,
                                         "bounded stacks, proven by the compiler plugin");
}
