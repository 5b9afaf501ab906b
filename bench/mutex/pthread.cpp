// OS threads.
#include "../units_pthread.hpp"
#include "mutex.hpp"

int main() { bench::units::run(bench::mutex_row<bench::units>); }
