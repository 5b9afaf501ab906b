// The function that link-time optimization inlines into the code that suspends.
#include "counted_elsewhere.hpp"

thread_local int counted_elsewhere = 0;

void count_elsewhere() { ++counted_elsewhere; }
int* where_counted() { return &counted_elsewhere; }
