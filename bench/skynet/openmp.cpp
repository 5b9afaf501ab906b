// OpenMP's tasks.
#include "../forks_openmp.hpp"
#include "skynet.hpp"

int main() { bench::forks::run(bench::skynet_row<bench::forks>); }
