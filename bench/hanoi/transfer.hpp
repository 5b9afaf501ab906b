// Recursive C++20 coroutines: the innermost one hands its element to the consumer directly, as with std::generator.
#pragma once

#include "../recursive_generator.hpp"
#include "hanoi.hpp"

namespace bench {

inline recursive_generator<std::uint64_t> produce(unsigned disks, unsigned from, unsigned to, unsigned spare) {
  if (disks == 0) {
    co_return;
  }
  co_yield produce(disks - 1, from, spare, to);
  co_yield move(disks, from, to);
  co_yield produce(disks - 1, spare, to, from);
}

/// The program of an implementation.
inline void transfer_main(const char* impl, const char* note) {
  hanoi_rows(
      impl,
      [](unsigned disks) {
        digest moves;
        for (auto all = produce(disks, 0, 1, 2); all.next();) {
          moves.take(all.value());
        }
        return moves;
      },
      note);
}

}  // namespace bench
