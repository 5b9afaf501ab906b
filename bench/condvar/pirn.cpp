// pirn's fibers.
#include "../units_pirn.hpp"
#include "condvar.hpp"

int main() { bench::units::run(bench::condvar_row<bench::units>); }
