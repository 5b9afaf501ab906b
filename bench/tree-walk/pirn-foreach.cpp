// The generator's body calls the consumer, which is inlined into it. There is no such form for two trees at once.
#include "pirn/coro/generator.hpp"

#include "tree.hpp"

namespace {

template <typename Yield>
void walk(Yield& yield, const bench::node* node) {
  if (node->left != nullptr) {
    walk(yield, node->left);
  }
  yield(node->value);
  if (node->right != nullptr) {
    walk(yield, node->right);
  }
}

}  // namespace

int main() {
  bench::walk_row("pirn-foreach", [](const bench::node* root) {
    bench::digest values;
    pirn::for_each<std::uint64_t>([root](auto& yield) { walk(yield, root); },
                                  [&](std::uint64_t value) { values.take(value); });
    return values;
  });
}
