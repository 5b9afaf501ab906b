// GNU Pth.
#include "../units_pth.hpp"
#include "threads.hpp"

int main() { bench::units::run(bench::threads_row<bench::units>); }
