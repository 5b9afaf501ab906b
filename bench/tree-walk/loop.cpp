// Iterators written by hand, each with a stack of nodes: the usual form without coroutines.
#include "tree.hpp"

namespace {

class in_order {
 public:
  explicit in_order(const bench::node* root) { descend(root); }

  /// Returns the next node, or null.
  const bench::node* next() {
    if (open_.empty()) {
      return nullptr;
    }
    const bench::node* node = open_.back();
    open_.pop_back();
    descend(node->right);
    return node;
  }

 private:
  void descend(const bench::node* node) {
    for (; node != nullptr; node = node->left) {
      open_.push_back(node);
    }
  }

  std::vector<const bench::node*> open_;  // nodes whose left side is done or being walked
};

class leaves {
 public:
  explicit leaves(const bench::node* root) { open_.push_back(root); }

  /// Returns the next leaf, or null.
  const bench::node* next() {
    if (open_.empty()) {
      return nullptr;
    }
    const bench::node* node = open_.back();
    open_.pop_back();
    for (; !node->leaf(); node = node->left) {
      open_.push_back(node->right);
    }
    return node;
  }

 private:
  std::vector<const bench::node*> open_;  // not yet visited
};

}  // namespace

int main() {
  bench::walk_row(
      "loop",
      [](const bench::node* root) {
        bench::digest values;
        in_order nodes(root);
        while (const bench::node* node = nodes.next()) {
          values.take(node->value);
        }
        return values;
      },
      "iterators with a stack of nodes, written by hand");
  bench::fringe_row(
      "loop",
      [](const bench::node* one, const bench::node* other) {
        leaves left(one);
        leaves right(other);
        std::uint64_t equal = 0;
        for (;; ++equal) {
          const bench::node* a = left.next();
          const bench::node* b = right.next();
          if (a == nullptr || b == nullptr || a->value != b->value) {
            return equal;
          }
        }
      },
      "iterators with a stack of nodes, written by hand");
}
