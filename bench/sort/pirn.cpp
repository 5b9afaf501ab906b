// pirn's fibers.
#include "../units_pirn.hpp"
#include "sort.hpp"

int main() { bench::units::run(bench::sort_row<bench::units>::measure); }
