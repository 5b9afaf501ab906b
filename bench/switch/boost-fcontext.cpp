// Boost.Context's raw jump: two functions on two stacks hand control to each other.
#include "../harness.hpp"

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/fixedsize_stack.hpp>

namespace {

namespace ctx = boost::context::detail;

std::uint64_t others = 0;

[[noreturn, gnu::noinline]] void other(ctx::transfer_t from) {
  for (;;) {
    ++others;
    from = ctx::jump_fcontext(from.fctx, nullptr);
  }
}

ctx::fcontext_t peer;

[[gnu::noinline]] void run(std::uint64_t n) {
  const std::uint64_t before = others;
  ctx::fcontext_t to = peer;
  for (std::uint64_t i = 0; i < n / 2; ++i) {
    to = ctx::jump_fcontext(to, nullptr).fctx;
  }
  peer = to;
  bench::check(others - before == n / 2, "every switch reaches the other function");
}

}  // namespace

int main() {
  boost::context::fixedsize_stack stacks(bench::input("STACK"));
  const boost::context::stack_context stack = stacks.allocate();
  peer = ctx::make_fcontext(stack.sp, stack.size, other);
  bench::row("switch", "boost-fcontext", bench::param("contexts", 2), "ns", bench::ns_per_operation(run));
}
