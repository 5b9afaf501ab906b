// How the schedulers of rr.h and ll.h run a dispatcher.
#pragma once

#include "usched.h"

extern "C" {

/// As usched_run, but pthread_exit or pthread_cancel in a thread ends only that thread, until s_next returns null: then
/// the end of the OS thread continues in the caller.
__attribute__((visibility("hidden"))) void pirn_usched_run_all(usched* s);

}  // extern "C"
