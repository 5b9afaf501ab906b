// pirn's tasks, whose frames are from lists that each worker keeps, one for each size.
#include "frames_pirn.hpp"

int main() { bench::frames_pirn_rows("pirn", "co_await of pirn::task, frames from lists of the worker"); }
