// GNU Pth.
#include "../units_pth.hpp"
#include "mutex.hpp"

int main() { bench::units::run(bench::mutex_row<bench::units>); }
