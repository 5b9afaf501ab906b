// Boost.Coroutine2 on pooled stacks.
#include <boost/coroutine2/coroutine.hpp>
#include <boost/coroutine2/pooled_fixedsize_stack.hpp>

#include "hanoi.hpp"

namespace {

using coroutine = boost::coroutines2::coroutine<std::uint64_t>;

void produce(unsigned disks, unsigned from, unsigned to, unsigned spare, coroutine::push_type& yield) {
  if (disks == 0) {
    return;
  }
  produce(disks - 1, from, spare, to, yield);
  yield(bench::move(disks, from, to));
  produce(disks - 1, spare, to, from, yield);
}

}  // namespace

int main() {
  boost::coroutines2::pooled_fixedsize_stack stacks(bench::input("STACK"));
  bench::hanoi_rows("boost-coroutine2", [&](unsigned disks) {
    bench::digest moves;
    coroutine::pull_type all(stacks, [disks](coroutine::push_type& yield) { produce(disks, 0, 1, 2, yield); });
    for (; all; all()) {
      moves.take(all.get());
    }
    return moves;
  });
}
