// Plain calls.
#include "../forks_serial.hpp"
#include "matmul.hpp"

int main() { bench::forks::run(bench::matmul_row<bench::forks>); }
