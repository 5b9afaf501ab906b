// pirn's fork-join.
#include "../forks_pirn.hpp"
#include "fib40.hpp"

int main() { bench::forks::run(bench::fib_row<bench::forks>); }
