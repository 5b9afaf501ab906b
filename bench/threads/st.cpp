// State Threads.
#include "../units_st.hpp"
#include "threads.hpp"

int main() { bench::units::run(bench::threads_row<bench::units>); }
