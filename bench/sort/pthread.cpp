// OS threads.
#include "../units_pthread.hpp"
#include "sort.hpp"

int main() { bench::units::run(bench::sort_row<bench::units>::measure); }
