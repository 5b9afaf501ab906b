// C++20 coroutines that run when they are called: an awaiter suspends only if the coroutine could not end at once.
#include "task.hpp"

int main() {
  bench::write_fully_rows("cpp20-inline", bench::ready, bench::send_all<bench::start::immediately>,
                          "pooled or elided frames, a call runs until it must wait");
}
