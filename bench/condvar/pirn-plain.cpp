// As pirn, but the fibers are where a plain spawn puts them.
#include "../units_pirn.hpp"
#include "condvar.hpp"

using units = bench::plain_units;

int main() { units::run(bench::condvar_row<units>); }
