// As pirn, but the fibers are migratable.
#include "../units_pirn.hpp"
#include "threads.hpp"

using units = bench::units_that_are<bench::mobility::migratable>;

int main() { units::run(bench::threads_row<units>); }
