// As pirn, but a wake-up switches to the waiter at once.
#include "../units_pirn_policy.hpp"
#include "threads.hpp"

int main() { bench::switching_units::run(bench::threads_row<bench::switching_units>); }
