// As cpp20.cpp, with each frame from malloc.
#define BENCH_FRAMES_FROM_MALLOC
#include "task.hpp"

int main() {
  bench::write_fully_rows("cpp20-malloc", bench::ready, bench::send_all<bench::start::lazily>,
                          "each frame from malloc, symmetric transfer");
}
