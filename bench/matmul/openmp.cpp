// OpenMP's tasks.
#include "../forks_openmp.hpp"
#include "matmul.hpp"

int main() { bench::forks::run(bench::matmul_row<bench::forks>); }
