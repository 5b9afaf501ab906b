// Plain calls.
#include "../forks_serial.hpp"
#include "fib40.hpp"

int main() { bench::forks::run(bench::fib_row<bench::forks>); }
