// The transfer workload: two contexts hand two values to each other, in registers where possible.
#pragma once

#include "../harness.hpp"

namespace bench {

/// The two values that travel with every switch.
struct two {
  std::uint64_t first;
  std::uint64_t second;
};

/// The step of each side between its receiving and its sending of the values.
constexpr two step(two values) { return {values.first + 1, values.second + 3}; }

/// Measures `round_trips(count, values)`: `count` times, send the values to the other side, which takes a step and
/// sends them back, and take a step too; returns the values after that. The figure is for one switch, half a round
/// trip.
template <typename RoundTrips>
void transfer_row(const char* impl, RoundTrips round_trips, const char* note = nullptr) {
  two values{7, 11};
  const double ns = ns_per_operation([&](std::uint64_t n) {
    const two before = values;
    values = round_trips(n / 2, before);
    check(values.first - before.first == n && values.second - before.second == 3 * n,
          "both values arrive with every switch");
  });
  row("transfer", impl, param("values", 2), "ns", ns, note);
}

}  // namespace bench
