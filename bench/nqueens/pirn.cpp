// pirn's fork-join.
#include "../forks_pirn.hpp"
#include "nqueens.hpp"

int main() { bench::forks::run(bench::queens_row<bench::forks>); }
