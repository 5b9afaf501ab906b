// Generators on pooled stacks, whose bodies are ordinary recursive functions.
#include "pirn/coro/generator.hpp"

#include "tree.hpp"

namespace {

using generator = pirn::generator<std::uint64_t>;

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

generator fringe_of(const bench::node* root) {
  return [root](auto& yield) { fringe(yield, root); };
}

std::uint64_t equal_leaves(generator a, generator b) {
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
  bench::walk_row("pirn", [](const bench::node* root) {
    bench::digest values;
    for (const std::uint64_t value : generator([root](auto& yield) { walk(yield, root); })) {
      values.take(value);
    }
    return values;
  });
  bench::fringe_row("pirn", [](const bench::node* one, const bench::node* other) {
    return equal_leaves(fringe_of(one), fringe_of(other));
  });
}
