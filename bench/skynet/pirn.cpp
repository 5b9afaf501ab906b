// pirn's fork-join.
#include "../forks_pirn.hpp"
#include "skynet.hpp"

int main() { bench::forks::run(bench::skynet_row<bench::forks>); }
