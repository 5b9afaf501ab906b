// State Threads.
#include "../units_st.hpp"
#include "fib.hpp"

int main() { bench::units::run(bench::fib_row<bench::units>); }
