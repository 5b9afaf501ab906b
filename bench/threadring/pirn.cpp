// pirn's fibers on one worker, with a wait queue each to wait in for the token.
#include "pirn_queue.hpp"

int main() { bench::threadring_of_fibers<bench::queue_place>("pirn", "fibers that wait in queues"); }
