// Stacks from malloc.
#include "pirn_new.hpp"

int main() { bench::pirn_new_main("pirn-new", "coroutine, a new stack from malloc for each request"); }
