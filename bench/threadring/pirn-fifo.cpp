// As pirn, but who is woken queues behind all that are ready.
#include "pirn_queue.hpp"

int main() {
  bench::threadring_of_fibers<bench::queue_place>("pirn-fifo", "pirn, woken fibers run first in first out", 0);
}
