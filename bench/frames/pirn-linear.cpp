// pirn's tasks with frames from memory that grows and shrinks linearly.
#include "linear.hpp"

#define BENCH_TASK_FRAMES bench::linear_frames
#include "frames_pirn.hpp"

int main() { bench::frames_pirn_rows("pirn-linear", "as pirn, with frames from one stack of frames in the program"); }
