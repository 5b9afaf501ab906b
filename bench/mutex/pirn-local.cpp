// pirn's fibers, on one worker.
#include "../units_pirn_local.hpp"
#include "mutex.hpp"

int main() { bench::local_units::run(bench::mutex_row<bench::local_units>); }
