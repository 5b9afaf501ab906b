// State Threads.
#include "../units_st.hpp"
#include "condvar.hpp"

int main() { bench::units::run(bench::condvar_row<bench::units>); }
