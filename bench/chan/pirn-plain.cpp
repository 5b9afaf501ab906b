// As pirn, but the fibers are where a plain spawn puts them.
#include "../units_pirn.hpp"
#include "channel_pirn.hpp"

using units = bench::plain_units;

int main() {
  units::run([] { bench::chan<units, bench::channel_of_pirn>::measure(units::note); });
}
