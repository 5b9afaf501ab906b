// pirn's fibers on one worker, each of which waits for the token in its own wait queue.
#include "pirn_queue.hpp"

int main() { bench::threadring_of_fibers<bench::queue_place>("pirn", "fibers that wait in queues"); }
