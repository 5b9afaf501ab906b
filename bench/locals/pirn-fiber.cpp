// A fiber_local, in a fiber.
#include "found.hpp"
#include "pirn/fiber/fiber_local.hpp"
#include "pirn/fiber/runtime.hpp"

int main() {
  const bench::found_variables<pirn::fiber_local<std::uint64_t>> variables;
  pirn::runtime runtime({.workers = 1});
  runtime.run([&] { variables.measure("pirn-fiber", "a fiber_local"); });
}
