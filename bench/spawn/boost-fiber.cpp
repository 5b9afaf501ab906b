// Boost.Fiber on pooled stacks.
#include "spawn.hpp"

#include <boost/fiber/all.hpp>
#include <boost/fiber/pooled_fixedsize_stack.hpp>

int main() {
  boost::fibers::pooled_fixedsize_stack stacks(bench::input("STACK"));
  std::uint64_t ran = 0;
  bench::spawn_rows(
      "boost-fiber", ran, [&] { return boost::fibers::fiber(std::allocator_arg, stacks, [&ran] { ++ran; }); },
      [](boost::fibers::fiber& fiber) { fiber.join(); });
}
