// As pirn, but the youngest waiter for a mutex is woken first.
#include "../units_pirn_policy.hpp"
#include "condvar.hpp"

int main() { bench::lifo_units::run(bench::condvar_row<bench::lifo_units>); }
