// Datagrams sent back in batches, on pirn's engine for io_uring.
#include "udp_pirn.hpp"

int main(int, char** argv) { return bench::serve_udp(bench::uring(), argv[1], bench::echo_batches); }
