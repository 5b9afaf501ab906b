// oneTBB.
#include "../forks_tbb.hpp"
#include "fib40.hpp"

int main() { bench::forks::run(bench::fib_row<bench::forks>); }
