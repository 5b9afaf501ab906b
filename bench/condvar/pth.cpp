// GNU Pth.
#include "../units_pth.hpp"
#include "condvar.hpp"

int main() { bench::units::run(bench::condvar_row<bench::units>); }
