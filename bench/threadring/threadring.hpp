// The threadring workload, after thread-ring of the Computer Language Benchmarks Game: processes in a ring pass a token
// that holds the number of remaining hops. A process that gets it as 0 reports that; a process that gets it as less
// passes it on and ends.
#pragma once

#include "../harness.hpp"

namespace bench {

/// Measures hops. `pass(token)` gives the token to process 0 and returns the place of the process that got it as 0.
template <typename Pass>
void threadring_row(const char* impl, Pass pass, const char* note) {
  const std::uint64_t processes = input("PROCESSES");
  const auto run = [&](std::uint64_t hops) {
    check(pass(static_cast<std::int64_t>(hops) - 1) == (hops - 1) % processes,
          "the token comes as far as its hops say");
  };
  row("threadring", impl, param("processes", processes), "ns", ns_per_operation(run, processes), note);
}

/// The common part of all processes: gets tokens by `receive()` until one ends the process.
template <typename Receive, typename Send, typename Finish>
[[gnu::always_inline]] inline void threadring_process(Receive receive, Send send, Finish finish) {
  for (;;) {
    const std::int64_t token = receive();
    if (token == 0) {
      finish();
      continue;
    }
    send(token - 1);
    if (token < 0) {
      return;
    }
  }
}

}  // namespace bench
