// C++20 coroutines of which each await and each end goes through the scheduler.
#include "task.hpp"

int main() {
  bench::write_fully_rows("cpp20-scheduler", bench::ready, bench::send_all<bench::start::scheduled>,
                          "pooled or elided frames, an await and an end go through the queue");
}
