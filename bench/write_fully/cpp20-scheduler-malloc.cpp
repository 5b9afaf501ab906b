// As cpp20-scheduler.cpp, with each frame from malloc: what the source compares with.
#define BENCH_FRAMES_FROM_MALLOC
#include "task.hpp"

int main() {
  bench::write_fully_rows("cpp20-scheduler-malloc", bench::ready, bench::send_all<bench::start::scheduled>,
                          "each frame from malloc, an await and an end go through the queue");
}
