// Stacks from malloc.
#include "ucontext_new.hpp"

int main() { bench::ucontext_new_main("ucontext-new", "swapcontext, a new stack from malloc for each request"); }
