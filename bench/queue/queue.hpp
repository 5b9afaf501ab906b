// The queue workload, after the one of queues in Dolan, Muralidharan and Gregg, "Compiler support for lightweight
// context switching": a million nodes pass through one queue, which equal numbers of producers and consumers share. All
// are pirn's fibers, so that only the queue differs. Each consumer sees the nodes of a producer in their order, and all
// together see every node once.
#pragma once

#include <atomic>

#include "../units_pirn.hpp"

namespace bench {

/// Passes through a queue once in a run, so that no algorithm needs to handle reused nodes.
struct node {
  std::atomic<node*> next = nullptr;
  std::uint64_t number = 0;
};

/// Waits for queues that have no wait: lets other fibers run until there is an element.
template <typename Queue>
std::uint64_t take_at_last(Queue& queue) {
  std::uint64_t number = 0;
  while (!queue.try_take(number)) {
    units::yield();
  }
  return number;
}

/// Measures an unlimited queue: `put(node*)` and `take()`, which waits and returns the number of the node.
template <typename Queue>
void queue_row(const char* impl, const char* note) {
  const std::uint64_t pairs = input("PAIRS");
  const std::uint64_t workers = input("WORKERS");
  static constexpr std::uint64_t max_pairs = 8;
  check(pairs <= max_pairs, "at most 8 producers");
  static constexpr std::uint64_t turn = 64;  // nodes that a producer puts before it yields
  std::vector<node> nodes;
  const auto run = [&](std::uint64_t n) {
    if (nodes.size() != n) {
      nodes = std::vector<node>(n);
    }
    Queue queue;
    const std::uint64_t share = n / pairs;
    std::atomic<std::uint64_t> sum = 0;
    units::together(2 * pairs, [&](std::uint64_t i) {
      if (i < pairs) {
        for (std::uint64_t number = i * share; number < (i + 1) * share; ++number) {
          nodes[number].number = number;
          queue.put(&nodes[number]);
          if (number % turn == 0) {
            units::yield();
          }
        }
        return;
      }
      std::uint64_t next[max_pairs] = {};  // for each producer the smallest number that may come
      std::uint64_t mine = 0;
      for (std::uint64_t k = 0; k < share; ++k) {
        const std::uint64_t number = queue.take();
        const std::uint64_t producer = number / share;
        check(number >= next[producer], "the nodes of a producer keep their order");
        next[producer] = number + 1;
        mine += number;
      }
      sum += mine;
    });
    check(sum == n * (n - 1) / 2, "every node arrives once");
  };
  const double ns = ns_per_operation(run, input("MILLION"), clock_for(workers));
  row("queue", impl, R"({"pairs":)" + std::to_string(pairs) + R"(,"workers":)" + std::to_string(workers) + "}", "ns",
      ns, note);
}

/// The program of an implementation.
template <typename Queue>
void queue_main(const char* impl, const char* note) {
  units::run([=] { queue_row<Queue>(impl, note); });
}

}  // namespace bench
