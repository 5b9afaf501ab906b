// OpenMP's tasks.
#include "../forks_openmp.hpp"
#include "nqueens.hpp"

int main() { bench::forks::run(bench::queens_row<bench::forks>); }
