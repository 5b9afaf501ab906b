// As pirn, in a runtime with time slices, and with a preemption point before each yield: what the two cost together.
#include <chrono>

#include "yield.hpp"

int main() {
  bench::yields(
      "pirn-slice", {.time_slice = std::chrono::milliseconds(2)}, [] { pirn::this_fiber::preemption_point(); },
      "time slices of 2 ms, and a preemption point before each yield");
}
