// Boost.Context's fiber: two functions resume each other.
#include "../harness.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>

namespace {

namespace ctx = boost::context;

std::uint64_t others = 0;
bool stopping = false;

[[gnu::noinline]] ctx::fiber other(ctx::fiber&& from) {
  while (!stopping) {
    ++others;
    from = std::move(from).resume();
  }
  return std::move(from);
}

ctx::fiber peer;

[[gnu::noinline]] void run(std::uint64_t n) {
  const std::uint64_t before = others;
  for (std::uint64_t i = 0; i < n / 2; ++i) {
    peer = std::move(peer).resume();
  }
  bench::check(others - before == n / 2, "every switch reaches the other function");
}

}  // namespace

int main() {
  peer = ctx::fiber(std::allocator_arg, ctx::fixedsize_stack(bench::input("STACK")), other);
  bench::row("switch", "boost-context", bench::param("contexts", 2), "ns", bench::ns_per_operation(run));
  stopping = true;
  peer = std::move(peer).resume();
}
