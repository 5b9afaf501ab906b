// Boost.Fiber.
#include "../units_boost_fiber.hpp"
#include "threads.hpp"

int main() { bench::units::run(bench::threads_row<bench::units>); }
