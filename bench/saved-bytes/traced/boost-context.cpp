// Boost.Context: six registers and the control words lie on the stack, and its sp is the whole context.
#include <boost/context/detail/fcontext.hpp>
#include <boost/context/fixedsize_stack.hpp>

#include "traced.hpp"

namespace {

namespace ctx = boost::context::detail;

[[noreturn]] void body(ctx::transfer_t from) {
  for (int i = 0;; ++i) {
    from = ctx::jump_fcontext(from.fctx, &i);
  }
}

ctx::fcontext_t suspended = nullptr;

}  // namespace

int main() {
  boost::context::fixedsize_stack stacks(65536);
  const boost::context::stack_context stack = stacks.allocate();
  suspended = ctx::make_fcontext(stack.sp, stack.size, body);
  for (int i = 0; i < 3; ++i) {
    suspended = ctx::jump_fcontext(suspended, nullptr).fctx;
    bench::suspended("resume", {{static_cast<char*>(stack.sp) - stack.size, stack.sp}, {&suspended, &suspended + 1}});
  }
  bench::image_row("boost-context", "resume",
                   static_cast<std::size_t>(static_cast<char*>(stack.sp) - static_cast<char*>(suspended)));
}
