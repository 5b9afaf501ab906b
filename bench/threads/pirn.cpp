// pirn's fibers.
#include "../units_pirn.hpp"
#include "threads.hpp"

int main() { bench::units::run(bench::threads_row<bench::units>); }
