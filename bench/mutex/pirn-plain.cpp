// As pirn, but the fibers are where a plain spawn puts them.
#include "../units_pirn.hpp"
#include "mutex.hpp"

using units = bench::plain_units;

int main() { units::run(bench::mutex_row<units>); }
