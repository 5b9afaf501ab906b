// GNU Pth.
#include "../units_pth.hpp"
#include "sort.hpp"

int main() { bench::units::run(bench::sort_row<bench::units>::measure); }
