// As pirn, but a woken fiber goes first without a bound.
#include "pirn_queue.hpp"

int main() {
  bench::threadring_of_fibers<bench::queue_place>("pirn-lifo", "pirn, the fiber woken last runs first, always", ~0U);
}
