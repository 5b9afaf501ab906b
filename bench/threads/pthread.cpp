// OS threads.
#include "../units_pthread.hpp"
#include "threads.hpp"

int main() { bench::units::run(bench::threads_row<bench::units>); }
