// As pirn, but the fibers are migratable.
#include "../units_pirn.hpp"
#include "channel_pirn.hpp"

using units = bench::units_that_are<bench::mobility::migratable>;

int main() {
  units::run(
      [] { bench::chan<units, bench::channel_of_pirn>::measure("channel<T>, fibers may resume on any worker"); });
}
