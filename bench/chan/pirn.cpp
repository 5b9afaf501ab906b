// pirn's fibers and channels.
#include "../units_pirn.hpp"
#include "channel_pirn.hpp"

int main() {
  bench::units::run([] { bench::chan<bench::units, bench::channel_of_pirn>::measure("channel<T>"); });
}
