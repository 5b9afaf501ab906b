// The tree-walk workload: binary trees of random shape. Their nodes lie in memory in the order of a walk, as after a
// bulk load, so that the figure shows the walk and not the memory. tree.rs is the same in Rust.
#pragma once

#include <memory>
#include <vector>

#include "../harness.hpp"

namespace bench {

struct node {
  const node* left = nullptr;
  const node* right = nullptr;
  std::uint64_t value = 0;

  bool leaf() const { return left == nullptr && right == nullptr; }
};

enum class shape {
  any,   ///< each node of a range is as likely to be its root as any other
  full,  ///< no node has a single child: the leaves are every other node in order, whatever the shape
};

/// A tree of `size` nodes (odd when full), whose values are its nodes' positions.
class tree {
 public:
  tree(std::uint64_t size, shape shape, std::uint64_t seed) : nodes_(size), shape_(shape), state_(seed) {
    root_ = build(0, size);
  }
  tree(const tree&) = delete;
  tree& operator=(const tree&) = delete;

  const node* root() const { return root_; }
  std::vector<node>& nodes() { return nodes_; }

 private:
  /// Returns the root of the positions from `first` up to `last`.
  const node* build(std::uint64_t first, std::uint64_t last) {
    if (first == last) {
      return nullptr;
    }
    const std::uint64_t size = last - first;
    std::uint64_t at = first;
    if (shape_ == shape::any) {
      at += random() % size;
    } else if (size > 1) {
      at += 1 + 2 * (random() % (size / 2));
    }
    node& root = nodes_[at];
    root.value = at;
    root.left = build(first, at);
    root.right = build(at + 1, last);
    return &root;
  }

  /// xorshift64
  std::uint64_t random() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

  std::vector<node> nodes_;
  shape shape_;
  std::uint64_t state_;
  const node* root_ = nullptr;
};

/// Measures `walk(root)`, which returns the digest of all values of a tree in order.
template <typename Walk>
void walk_row(const char* impl, Walk walk, const char* note = nullptr) {
  const std::uint64_t size = input("NODES");
  const tree one(size, shape::any, 1);
  digest expected;
  for (std::uint64_t i = 0; i < size; ++i) {
    expected.take(i);
  }
  const double ns = ns_per_operation(
      [&](std::uint64_t n) {
        for (std::uint64_t done = 0; done < n; done += size) {
          check(walk(one.root()) == expected, "all values arrive in order");
        }
      },
      size);
  row("tree-walk", impl, mode("walk"), "ns", ns, note);
}

/// Returns how many elements two generators have in common, from the first.
template <typename Generator>
std::uint64_t equal_run(Generator one, Generator other) {
  std::uint64_t equal = 0;
  while (one.next() && other.next() && one.value() == other.value()) {
    ++equal;
  }
  return equal;
}

/// Measures `equal_leaves(a, b)`, which returns how many leaves, from the left, the trees with these roots have in
/// common. They have the same fringe if that is all of them. The figure is for one leaf of both.
template <typename EqualLeaves>
void fringe_row(const char* impl, EqualLeaves equal_leaves, const char* note = nullptr) {
  const std::uint64_t size = input("NODES") | 1;
  const std::uint64_t leaves = size / 2 + 1;
  const tree one(size, shape::full, 1);
  tree other(size, shape::full, 2);
  other.nodes()[100].value = 0;
  check(equal_leaves(one.root(), other.root()) == 50, "a difference is seen where it is");
  other.nodes()[100].value = 100;
  const double ns = ns_per_operation(
      [&](std::uint64_t n) {
        for (std::uint64_t done = 0; done < n; done += leaves) {
          check(equal_leaves(one.root(), other.root()) == leaves, "all leaves are compared");
        }
      },
      leaves);
  row("tree-walk", impl, mode("same-fringe"), "ns", ns, note);
}

}  // namespace bench
