// Recursive C++20 coroutines: the innermost one hands its element to the consumer directly, as with std::generator.
#include "../recursive_generator.hpp"
#include "tree.hpp"

namespace {

using generator = bench::recursive_generator<std::uint64_t>;

generator walk(const bench::node* node) {
  if (node->left != nullptr) {
    co_yield walk(node->left);
  }
  co_yield node->value;
  if (node->right != nullptr) {
    co_yield walk(node->right);
  }
}

generator fringe(const bench::node* node) {
  if (node->leaf()) {
    co_yield node->value;
    co_return;
  }
  co_yield fringe(node->left);
  co_yield fringe(node->right);
}

}  // namespace

int main() {
  const char* note = "by symmetric transfer, as std::generator; frames pooled";
  bench::walk_row(
      "cpp20-transfer",
      [](const bench::node* root) {
        bench::digest values;
        for (auto all = walk(root); all.next();) {
          values.take(all.value());
        }
        return values;
      },
      note);
  bench::fringe_row(
      "cpp20-transfer",
      [](const bench::node* one, const bench::node* other) { return equal_run(fringe(one), fringe(other)); }, note);
}
