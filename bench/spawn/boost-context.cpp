// Boost.Context's fiber on pooled stacks: create, then resume until it has returned. It has no scheduler for a join.
#include "spawn.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>

int main() {
  boost::context::pooled_fixedsize_stack stacks(bench::input("STACK"));
  std::uint64_t ran = 0;
  bench::spawn_rows(
      "boost-context", ran,
      [&] {
        return boost::context::fiber(std::allocator_arg, stacks, [&ran](boost::context::fiber&& from) {
          ++ran;
          return std::move(from);
        });
      },
      [](boost::context::fiber& fiber) { fiber = std::move(fiber).resume(); }, "create and resume, no scheduler");
}
