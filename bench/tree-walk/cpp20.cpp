// Nested C++20 coroutines: each takes the elements of the one inside it and yields them again.
#include "../generator.hpp"
#include "tree.hpp"

namespace {

using generator = bench::generator<std::uint64_t>;

generator walk(const bench::node* node) {
  if (node->left != nullptr) {
    for (auto values = walk(node->left); values.next();) {
      co_yield values.value();
    }
  }
  co_yield node->value;
  if (node->right != nullptr) {
    for (auto values = walk(node->right); values.next();) {
      co_yield values.value();
    }
  }
}

generator fringe(const bench::node* node) {
  if (node->leaf()) {
    co_yield node->value;
    co_return;
  }
  for (const bench::node* child : {node->left, node->right}) {
    for (auto values = fringe(child); values.next();) {
      co_yield values.value();
    }
  }
}

}  // namespace

int main() {
  const char* note = "a value is yielded again at every depth; frames pooled";
  bench::walk_row(
      "cpp20",
      [](const bench::node* root) {
        bench::digest values;
        for (auto all = walk(root); all.next();) {
          values.take(all.value());
        }
        return values;
      },
      note);
  bench::fringe_row(
      "cpp20", [](const bench::node* one, const bench::node* other) { return equal_run(fringe(one), fringe(other)); },
      note);
}
