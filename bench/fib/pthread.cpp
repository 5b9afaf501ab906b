// OS threads.
#include "../units_pthread.hpp"
#include "fib.hpp"

int main() { bench::units::run(bench::fib_row<bench::units>); }
