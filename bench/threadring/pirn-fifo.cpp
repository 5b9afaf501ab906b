// As pirn, but a woken fiber queues behind all ready ones.
#include "pirn_queue.hpp"

int main() {
  bench::threadring_of_fibers<bench::queue_place>("pirn-fifo", "pirn, woken fibers run first in first out", 0);
}
