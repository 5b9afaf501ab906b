// pirn's fibers.
#include "../units_pirn.hpp"
#include "fib.hpp"

int main() { bench::units::run(bench::fib_row<bench::units>); }
