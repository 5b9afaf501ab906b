// Boost.Fiber.
#include "../units_boost_fiber.hpp"
#include "fib.hpp"

int main() { bench::units::run(bench::fib_row<bench::units>); }
