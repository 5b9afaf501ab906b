// Boost.Coroutine2 on pooled stacks.
#include <boost/coroutine2/coroutine.hpp>
#include <boost/coroutine2/pooled_fixedsize_stack.hpp>

#include "tree.hpp"

namespace {

using coroutine = boost::coroutines2::coroutine<std::uint64_t>;

void walk(const bench::node* node, coroutine::push_type& yield) {
  if (node != nullptr) {
    walk(node->left, yield);
    yield(node->value);
    walk(node->right, yield);
  }
}

void fringe(const bench::node* node, coroutine::push_type& yield) {
  if (node->leaf()) {
    yield(node->value);
    return;
  }
  fringe(node->left, yield);
  fringe(node->right, yield);
}

}  // namespace

int main() {
  boost::coroutines2::pooled_fixedsize_stack stacks(bench::input("STACK"));
  bench::walk_row("boost-coroutine2", [&](const bench::node* root) {
    bench::digest values;
    coroutine::pull_type all(stacks, [root](coroutine::push_type& yield) { walk(root, yield); });
    for (; all; all()) {
      values.take(all.get());
    }
    return values;
  });
  bench::fringe_row("boost-coroutine2", [&](const bench::node* one, const bench::node* other) {
    coroutine::pull_type left(stacks, [one](coroutine::push_type& yield) { fringe(one, yield); });
    coroutine::pull_type right(stacks, [other](coroutine::push_type& yield) { fringe(other, yield); });
    std::uint64_t equal = 0;
    for (; left && right && left.get() == right.get(); left(), right()) {
      ++equal;
    }
    return equal;
  });
}
