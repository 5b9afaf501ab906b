// State Threads.
#include "../units_st.hpp"
#include "sort.hpp"

int main() { bench::units::run(bench::sort_row<bench::units>::measure); }
