// pirn's fibers on one worker in a ring, each with a separate place for the token.
#pragma once

#include <vector>

#include "../tell_of_fiber.hpp"
#include "pirn/fiber/runtime.hpp"
#include "threadring.hpp"

namespace bench {

/// The program of `impl`. A `Place` has put(token) and take(), which waits for the token. `lifo_turns` is that of the
/// runtime: a woken fiber goes first for so many turns in a row.
template <class Place>
void threadring_of_fibers(const char* impl, const char* note,
                          unsigned lifo_turns = pirn::runtime_options{}.lifo_turns) {
  need_memory(input("PROCESSES") * 5000);
  pirn::runtime runtime({.workers = 1, .calling_thread = true, .stack_size = input("STACK"), .lifo_turns = lifo_turns});
  runtime.run([&] {
    std::vector<Place> ring(input("PROCESSES"));
    Place finished;
    std::vector<pirn::fiber> fibers;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      fibers.push_back(pirn::spawn(
          [&mine = ring[i], &next = ring[(i + 1) % ring.size()], &finished, i]() __attribute__((always_inline)) {
            tell_of_fiber();
            threadring_process([&mine]() __attribute__((always_inline)) { return mine.take(); },
                               [&next](std::int64_t token) __attribute__((always_inline)) { next.put(token); },
                               [&finished, i] { finished.put(static_cast<std::int64_t>(i)); });
          }));
    }
    threadring_row(
        impl,
        [&](std::int64_t token) {
          ring[0].put(token);
          return static_cast<std::uint64_t>(finished.take());
        },
        note);
    ring[0].put(-1);
    for (pirn::fiber& fiber : fibers) {
      fiber.join();
    }
  });
}

}  // namespace bench
