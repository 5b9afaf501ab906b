// pirn's fibers, on one worker.
#include "../units_pirn_local.hpp"
#include "threads.hpp"

int main() { bench::local_units::run(bench::threads_row<bench::local_units>); }
