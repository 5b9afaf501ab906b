// Built on a switch in assembly that keeps the registers which a call keeps.
#define BENCH_CLASSIC
#include "client.hpp"

int main() { bench::client_rows("classic", "an out-of-line switch that saves what a call preserves, and returns"); }
