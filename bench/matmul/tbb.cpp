// oneTBB.
#include "../forks_tbb.hpp"
#include "matmul.hpp"

int main() { bench::forks::run(bench::matmul_row<bench::forks>); }
