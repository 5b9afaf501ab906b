// pirn::mutex and fibers that any worker may take from another: they leave the data of their worker.
#include "biased.hpp"

int main() {
  using units = bench::units_that_are<bench::mobility::migratable>;
  units::run([] { bench::biased<units>::measure("pirn-migratable", "pirn::mutex, fibers that may be stolen"); });
}
