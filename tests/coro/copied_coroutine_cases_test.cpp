// The tests of coroutine, applied to a coroutine that is copied out and in between any two resumes.
#define PIRN_TEST_COPIED
#include "copied_support.hpp"
#include "coroutine_test.cpp"         // NOLINT(bugprone-suspicious-include)
#include "coroutine_unwind_test.cpp"  // NOLINT(bugprone-suspicious-include)
