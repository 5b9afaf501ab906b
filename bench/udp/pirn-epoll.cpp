// Datagrams sent back one by one, on pirn's engine for epoll.
#include "udp_pirn.hpp"

int main(int, char** argv) { return bench::serve_udp(bench::epoll, argv[1], bench::echo_singly); }
