// Boost.Context's fiber, which carries no values: they are in a structure that both sides know.
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>

#include "transfer.hpp"

namespace {

namespace ctx = boost::context;

bool stopping = false;
ctx::fiber peer;
bench::two* mail;

[[gnu::noinline]] ctx::fiber other(ctx::fiber&& from) {
  while (!stopping) {
    *mail = bench::step(*mail);
    from = std::move(from).resume();
  }
  return std::move(from);
}

[[gnu::noinline]] bench::two round_trips(std::uint64_t count, bench::two values) {
  bench::two sent{};
  mail = &sent;
  ctx::fiber to = std::move(peer);
  for (std::uint64_t i = 0; i < count; ++i) {
    sent = values;
    to = std::move(to).resume();
    values = bench::step(sent);
  }
  peer = std::move(to);
  return values;
}

}  // namespace

int main() {
  peer = ctx::fiber(std::allocator_arg, ctx::fixedsize_stack(bench::input("STACK")), other);
  bench::transfer_row("boost-context", round_trips);
  stopping = true;
  peer = std::move(peer).resume();
}
