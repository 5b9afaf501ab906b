// pirn's fibers in the ring workload, each with a separate place for its messages; a cycle is on one worker.
#pragma once

#include <vector>

#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/latch.hpp"
#include "ring.hpp"

namespace bench::ring {

/// The place where a fiber waits, in its own `Queue`, for messages from its left neighbour, which is on the same
/// worker.
template <class Queue>
class place_in {
 public:
  void put(std::uint64_t sent, std::uint8_t message) {
    mail_.put(sent, message);
    waiting_.notify_one();
  }
  std::uint8_t take(std::uint64_t taken) {
    if (mail_.empty(taken)) {
      static constexpr pirn::wait_options for_message{.stoppable = false, .what = "a message"};
      if constexpr (requires(Queue queue) { queue.lock(); }) {
        waiting_.lock();
      }
      (void)waiting_.wait(for_message);
    }
    return mail_.take(taken);
  }

 private:
  Queue waiting_;
  letterbox mail_;
};

/// The program of `impl`. A `Place` is a `place_in` under a name of that program, so that its code is compiled for one
/// caller, and inlined. `lifo_turns` is that of the runtime's options.
template <class Place>
void of_fibers(const char* impl, const char* note, unsigned lifo_turns = pirn::runtime_options{}.lifo_turns) {
  const shape what = checked_shape(5000);
  const auto workers = static_cast<unsigned>(what.workers);
  pirn::runtime runtime(
      {.workers = workers, .calling_thread = workers == 1, .stack_size = input("STACK"), .lifo_turns = lifo_turns});
  runtime.run([&] {
    std::vector<Place> places(what.coroutines);
    std::vector<std::uint64_t> hops(what.coroutines);
    std::vector<pirn::fiber> fibers;
    fibers.reserve(what.coroutines);
    const std::uint64_t cycles = what.coroutines / what.n;
    pirn::latch start(1);
    for (std::uint64_t i = 0; i < what.coroutines; ++i) {
      const auto run = [&, i] {
        if (what.workers != 1) {
          start.wait().value();
        }
        with_extra(what.extra, [&, i] {
          Place& right = places[what.right_of(i)];
          hops[i] = make_rounds(
              what, i, [&right, sent = std::uint64_t{0}](std::uint8_t message) mutable { right.put(sent++, message); },
              [&mine = places[i], taken = std::uint64_t{0}]() mutable { return mine.take(taken++); });
        });
      };
      fibers.push_back(pirn::spawn(run, {.worker = static_cast<int>(i / what.n * what.workers / cycles)}));
    }
    const auto now = clock_for(what.workers);
    const double began = now();
    start.count_down();
    for (pirn::fiber& fiber : fibers) {
      fiber.join();
    }
    row(impl, what, now() - began, std::accumulate(hops.begin(), hops.end(), std::uint64_t{0}), note);
  });
}

}  // namespace bench::ring
