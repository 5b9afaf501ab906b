// The hanoi workload: a recursive producer of moves.
//
//   void hanoi(unsigned disks, unsigned from, unsigned to, unsigned spare) {
//     if (disks == 0) return;
//     hanoi(disks - 1, from, spare, to);
//     yield(move(disks, from, to));
//     hanoi(disks - 1, spare, to, from);
//   }
#pragma once

#include "../harness.hpp"

namespace bench {

/// A move of disk `disk` as one word.
constexpr std::uint64_t move(unsigned disk, unsigned from, unsigned to) { return disk | from << 8 | to << 16; }

constexpr std::uint64_t moves_of(std::uint64_t disks) { return (std::uint64_t{1} << disks) - 1; }

/// The moves in order, computed without recursion: the checker.
inline digest moves_expected(unsigned disks) {
  digest moves;
  unsigned at[33] = {};  // the peg of every disk
  for (std::uint64_t i = 1; i <= moves_of(disks); ++i) {
    const unsigned disk = static_cast<unsigned>(std::countr_zero(i)) + 1;
    // Each disk goes around in one direction only: the largest the short way from peg 0 to 1, the others in turn.
    const unsigned to = (at[disk] + ((disks - disk) % 2 == 0 ? 1 : 2)) % 3;
    moves.take(move(disk, at[disk], to));
    at[disk] = to;
  }
  return moves;
}

/// Measures `solve(disks)`, which returns the digest of all moves from peg 0 to peg 1, for each number of disks.
template <typename Solve>
void hanoi_rows(const char* impl, Solve solve, const char* note = nullptr) {
  for (auto disks = static_cast<unsigned>(input("DISKS_FIRST")); disks <= input("DISKS_LAST"); ++disks) {
    const digest expected = moves_expected(disks);
    const double ns = ns_per_operation(
        [&](std::uint64_t n) {
          for (std::uint64_t done = 0; done < n; done += moves_of(disks)) {
            check(solve(disks) == expected, "all moves arrive in order");
          }
        },
        moves_of(disks));
    row("hanoi", impl, param("disks", disks), "ns", ns, note);
  }
}

}  // namespace bench
