// Boost.Fiber.
#include "../units_boost_fiber.hpp"
#include "condvar.hpp"

int main() { bench::units::run(bench::condvar_row<bench::units>); }
