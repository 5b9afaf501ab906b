// Stacks from calloc.
#define BENCH_STACKS_FROM_CALLOC
#include "pirn_new.hpp"

int main() { bench::pirn_new_main("pirn-new-calloc", "coroutine, a new stack from calloc for each request"); }
