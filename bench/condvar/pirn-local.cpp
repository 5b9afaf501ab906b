// pirn's fibers, on one worker.
#include "../units_pirn_local.hpp"
#include "condvar.hpp"

int main() { bench::local_units::run(bench::condvar_row<bench::local_units>); }
