// Stacks from calloc.
#define BENCH_STACKS_FROM_CALLOC
#include "ucontext_new.hpp"

int main() { bench::ucontext_new_main("ucontext-new-calloc", "swapcontext, a new stack from calloc for each request"); }
