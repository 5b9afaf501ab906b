// OS threads.
#include "../units_pthread.hpp"
#include "condvar.hpp"

int main() { bench::units::run(bench::condvar_row<bench::units>); }
