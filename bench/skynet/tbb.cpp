// oneTBB.
#include "../forks_tbb.hpp"
#include "skynet.hpp"

int main() { bench::forks::run(bench::skynet_row<bench::forks>); }
