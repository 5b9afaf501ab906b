// The skynet workload (A. Temerev): a unit makes ten units, and each of them ten, until there are a million, which
// return their numbers; the sums go back up.
#pragma once

#include "../forks.hpp"

namespace bench {

inline constexpr std::uint64_t skynet_leaves = 1'000'000;

template <typename Forks>
std::uint64_t skynet(std::uint64_t first, std::uint64_t leaves);

/// Returns the sum of `count` of the ten children, each of which has `leaves` leaves.
template <typename Forks>
std::uint64_t skynet_children(std::uint64_t first, std::uint64_t leaves, std::uint64_t count) {
  if (count == 1) {
    return skynet<Forks>(first, leaves);
  }
  const std::uint64_t half = count / 2;
  const auto [a, b] = Forks::both([=] { return skynet_children<Forks>(first, leaves, half); },
                                  [=] { return skynet_children<Forks>(first + half * leaves, leaves, count - half); });
  return a + b;
}

template <typename Forks>
std::uint64_t skynet(std::uint64_t first, std::uint64_t leaves) {
  return leaves == 1 ? first : skynet_children<Forks>(first, leaves / 10, 10);
}

template <typename Forks>
void skynet_row() {
  fork_row<Forks>("skynet", skynet_leaves, [] {
    check(skynet<Forks>(0, opaque(skynet_leaves)) == skynet_leaves * (skynet_leaves - 1) / 2, "the sum of all numbers");
  });
}

}  // namespace bench
