// Included first by the headers from fiber on, so that an older language level ends in one line that says so. The file
// that does not exist ends the compilation: no compiler continues after it and reports everything that is missing.
#pragma once

#if __cplusplus < 202100L
#error "pirn: fibers, and the layers above them, need C++23 (-std=c++23); C++20 is enough for context, stack and coro"
#include "C++23 is needed here: compile with -std=c++23"
#endif
