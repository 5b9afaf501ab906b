// Boost.Fiber.
#include "../units_boost_fiber.hpp"
#include "sort.hpp"

int main() { bench::units::run(bench::sort_row<bench::units>::measure); }
