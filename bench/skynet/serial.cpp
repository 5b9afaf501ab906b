// Plain calls.
#include "../forks_serial.hpp"
#include "skynet.hpp"

int main() { bench::forks::run(bench::skynet_row<bench::forks>); }
