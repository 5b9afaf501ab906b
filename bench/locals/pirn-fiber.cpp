// A fiber_local, in a fiber.
#include <deque>

#include "locals.hpp"
#include "pirn/fiber/fiber_local.hpp"
#include "pirn/fiber/runtime.hpp"

namespace {

std::deque<pirn::fiber_local<std::uint64_t>> variables;
[[gnu::noinline]] void add(std::uint64_t which) { ++variables[which].get(); }

}  // namespace

int main() {
  for (std::uint64_t i = 0; i < bench::input("VARIABLES"); ++i) {
    variables.emplace_back();
  }
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    bench::locals_row("pirn-fiber", add, [](std::uint64_t which) { return variables[which].get(); }, "a fiber_local");
  });
}
