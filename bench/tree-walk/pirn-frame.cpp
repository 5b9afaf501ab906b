// Generators on buffers in the consumer's frame, whose bodies are ordinary recursive functions.
#include "pirn/coro/generator.hpp"

#include "tree.hpp"

namespace {

using generator = pirn::generator<std::uint64_t, pirn::frame<16384>>;

PIRN_NONE void walk(generator::yield& yield, const bench::node* node) {
  if (node->left != nullptr) {
    walk(yield, node->left);
  }
  yield(node->value);
  if (node->right != nullptr) {
    walk(yield, node->right);
  }
}

PIRN_NONE void fringe(generator::yield& yield, const bench::node* node) {
  if (node->leaf()) {
    yield(node->value);
    return;
  }
  fringe(yield, node->left);
  fringe(yield, node->right);
}

std::uint64_t equal_leaves(const bench::node* a_root, const bench::node* b_root) {
  generator a = [a_root](auto& yield) { fringe(yield, a_root); };
  generator b = [b_root](auto& yield) { fringe(yield, b_root); };
  std::uint64_t equal = 0;
  auto one = a.begin();
  auto other = b.begin();
  for (; one != a.end() && other != b.end() && *one == *other; ++one, ++other) {
    ++equal;
  }
  return equal;
}

}  // namespace

int main() {
  bench::walk_row("pirn-frame", [](const bench::node* root) {
    bench::digest values;
    for (const std::uint64_t value : generator([root](auto& yield) { walk(yield, root); })) {
      values.take(value);
    }
    return values;
  });
  bench::fringe_row("pirn-frame", equal_leaves);
}
