// The same with fibers that may go on on any worker.
#include "../units_pirn.hpp"
#include "threads.hpp"

using units = bench::units_that_are<bench::mobility::migratable>;

int main() { units::run(bench::threads_row<units>); }
