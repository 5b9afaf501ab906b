// oneTBB.
#include "../forks_tbb.hpp"
#include "nqueens.hpp"

int main() { bench::forks::run(bench::queens_row<bench::forks>); }
