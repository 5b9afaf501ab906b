// pirn's fork-join.
#include "../forks_pirn.hpp"
#include "matmul.hpp"

int main() { bench::forks::run(bench::matmul_row<bench::forks>); }
