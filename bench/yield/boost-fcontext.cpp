// A ring of Boost.Context's raw contexts, each of which jumps directly to the next: a yield without a scheduler.
#include "../harness.hpp"

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/fixedsize_stack.hpp>

namespace {

namespace ctx = boost::context::detail;

struct member {
  ctx::fcontext_t context = nullptr;
  member* next = nullptr;
};

std::uint64_t yields = 0;
std::uint64_t left = 0;
member outside;
member* last = nullptr;

// A suspended context is handed to its successor, which stores it where its owner's predecessor looks for it.
void jump(member& from, member& to) {
  const ctx::transfer_t back = ctx::jump_fcontext(to.context, &from);
  static_cast<member*>(back.data)->context = back.fctx;
}

[[noreturn]] void body(ctx::transfer_t from) {
  member& self = *static_cast<member*>(from.data);
  outside.context = from.fctx;
  jump(self, outside);
  for (;;) {
    ++yields;
    if (--left == 0) {
      last = &self;
      jump(self, outside);
    } else {
      jump(self, *self.next);
    }
  }
}

void run(std::uint64_t n) {
  const std::uint64_t before = yields;
  left = n;
  jump(outside, *last->next);
  bench::check(yields - before == n, "the ring goes round as often as asked");
}

}  // namespace

int main() {
  boost::context::fixedsize_stack stacks(bench::input("STACK"));
  std::vector<member> ring(bench::input("FIBERS"));
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const boost::context::stack_context stack = stacks.allocate();
    ring[i].next = &ring[(i + 1) % ring.size()];
    ring[i].context = ctx::jump_fcontext(ctx::make_fcontext(stack.sp, stack.size, body), &ring[i]).fctx;
  }
  last = &ring.back();
  bench::row("yield", "boost-fcontext", bench::param("fibers", ring.size()), "ns",
             bench::ns_per_operation(run, bench::input("FIBERS")), "raw jumps around a ring, no scheduler");
}
