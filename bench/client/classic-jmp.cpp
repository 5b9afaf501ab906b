// As classic, but the switch ends with a jump, as in Boost.Context and in the paper.
#define BENCH_CLASSIC
#define BENCH_CLASSIC_JUMPS
#include "client.hpp"

int main() { bench::client_rows("classic-jmp", "the same, but it jumps"); }
