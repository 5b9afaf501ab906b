// Plain calls.
#include "../forks_serial.hpp"
#include "nqueens.hpp"

int main() { bench::forks::run(bench::queens_row<bench::forks>); }
