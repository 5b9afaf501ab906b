// The nqueens workload: in how many ways can QUEENS queens stand on a board of that size so that none attacks another?
// Row by row, with a fork for each free place.
#pragma once

#include <bit>

#include "../forks.hpp"

namespace bench {

/// The solutions for boards of 0 to 15.
inline constexpr std::uint64_t queens_solutions[] = {1,  1,   0,   0,    2,     10,    4,      40,
                                                     92, 352, 724, 2680, 14200, 73712, 365596, 2279184};

struct board {
  std::uint32_t all;        ///< a bit for each column
  std::uint32_t columns;    ///< occupied
  std::uint32_t diagonals;  ///< attacked in this row from the upper left
  std::uint32_t antidiagonals;
};

/// Solutions, and queens placed on the way.
struct placed {
  std::uint64_t solutions = 0;
  std::uint64_t queens = 0;
};

template <typename Forks>
placed place_row(board where);

/// Places the next queen in one of these columns.
template <typename Forks>
placed place_in(board where, std::uint32_t free) {
  const std::uint32_t first = free & -free;
  if (first == free) {
    const board next{where.all, where.columns | first, (where.diagonals | first) << 1,
                     (where.antidiagonals | first) >> 1};
    placed below = place_row<Forks>(next);
    ++below.queens;
    return below;
  }
  const auto [a, b] =
      Forks::both([=] { return place_in<Forks>(where, first); }, [=] { return place_in<Forks>(where, free & ~first); });
  return {a.solutions + b.solutions, a.queens + b.queens};
}

template <typename Forks>
placed place_row(board where) {
  if (where.columns == where.all) {
    return {1, 0};
  }
  const std::uint32_t free = where.all & ~(where.columns | where.diagonals | where.antidiagonals);
  return free == 0 ? placed{} : place_in<Forks>(where, free);
}

template <typename Forks>
void queens_row() {
  const std::uint64_t size = input("QUEENS");
  const auto solve = [size] {
    const placed found = place_row<Forks>({opaque((std::uint32_t{1} << size) - 1), 0, 0, 0});
    check(found.solutions == queens_solutions[size], "the number of solutions");
    return found.queens;
  };
  fork_row<Forks>("nqueens", solve(), solve);
}

}  // namespace bench
