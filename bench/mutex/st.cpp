// State Threads.
#include "../units_st.hpp"
#include "mutex.hpp"

int main() { bench::units::run(bench::mutex_row<bench::units>); }
