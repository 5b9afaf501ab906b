// pirn's fibers.
#include "../units_pirn.hpp"
#include "mutex.hpp"

int main() { bench::units::run(bench::mutex_row<bench::units>); }
