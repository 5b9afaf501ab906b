// GNU Pth.
#include "../units_pth.hpp"
#include "fib.hpp"

int main() { bench::units::run(bench::fib_row<bench::units>); }
