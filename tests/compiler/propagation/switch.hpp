// Stands for a switch in these programs: it leaves no value in any register that a function would preserve.
#pragma once

#if defined(__has_attribute) && __has_attribute(preserve_none)
#define NONE __attribute__((preserve_none))
#else
#error "this compiler has no preserve_none"
#endif

NONE void switch_away();

/// Adds to the sum that the program prints in the end.
void count(long what);
