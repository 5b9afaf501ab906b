// Boost.Context's fiber on pooled stacks.
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>

#include "coro_spawn.hpp"

int main() {
  boost::context::pooled_fixedsize_stack stacks(bench::input("STACK"));
  std::uint64_t ran = 0;
  bench::coro_spawn_row(
      "boost-context", ran,
      [&] {
        boost::context::fiber fiber(std::allocator_arg, stacks, [&ran](boost::context::fiber&& from) {
          ++ran;
          return std::move(from);
        });
        fiber = std::move(fiber).resume();
      },
      "pooled stacks");
}
