// Frames from malloc.
#define BENCH_FRAMES_FROM_MALLOC
#include "transfer.hpp"

int main() { bench::transfer_main("cpp20-transfer-malloc", "as cpp20-transfer, each frame from malloc"); }
