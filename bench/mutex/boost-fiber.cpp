// Boost.Fiber.
#include "../units_boost_fiber.hpp"
#include "mutex.hpp"

int main() { bench::units::run(bench::mutex_row<bench::units>); }
