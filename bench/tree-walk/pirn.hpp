// Generators whose bodies are ordinary recursive functions, on the kind of stack that Generator has.
#pragma once

#include "pirn/coro/generator.hpp"
#include "tree.hpp"

namespace bench {

template <typename Yield>
PIRN_NONE void walk(Yield& yield, const node* at) {
  if (at->left != nullptr) {
    walk(yield, at->left);
  }
  yield(at->value);
  if (at->right != nullptr) {
    walk(yield, at->right);
  }
}

template <typename Yield>
PIRN_NONE void fringe(Yield& yield, const node* at) {
  if (at->leaf()) {
    yield(at->value);
    return;
  }
  fringe(yield, at->left);
  fringe(yield, at->right);
}

/// Returns how many leaves, from the left, the trees with these roots have in common.
template <typename Generator>
std::uint64_t equal_leaves(const node* one_root, const node* other_root) {
  Generator one_fringe = [one_root](auto& yield) { fringe(yield, one_root); };
  Generator other_fringe = [other_root](auto& yield) { fringe(yield, other_root); };
  std::uint64_t equal = 0;
  auto one = one_fringe.begin();
  auto other = other_fringe.begin();
  for (; one != one_fringe.end() && other != other_fringe.end() && *one == *other; ++one, ++other) {
    ++equal;
  }
  return equal;
}

template <typename Generator>
void tree_walk_rows(const char* impl) {
  walk_row(impl, [](const node* root) {
    digest values;
    for (const std::uint64_t value : Generator([root](auto& yield) { walk(yield, root); })) {
      values.take(value);
    }
    return values;
  });
  fringe_row(impl, &equal_leaves<Generator>);
}

}  // namespace bench
