// A recursive walk that calls the consumer through an opaque pointer. Callbacks cannot do two walks at once, which a
// comparison of two trees needs.
#include "tree.hpp"

namespace {

using consumer = void (*)(bench::digest& values, std::uint64_t value);

void walk(const bench::node* node, consumer consume, bench::digest& values) {
  if (node != nullptr) {
    walk(node->left, consume, values);
    consume(values, node->value);
    walk(node->right, consume, values);
  }
}

}  // namespace

int main() {
  const consumer consume = bench::opaque(+[](bench::digest& values, std::uint64_t value) { values.take(value); });
  bench::walk_row(
      "callback",
      [consume](const bench::node* root) {
        bench::digest values;
        walk(root, consume, values);
        return values;
      },
      "through a function pointer");
}
