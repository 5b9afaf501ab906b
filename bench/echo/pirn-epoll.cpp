// An echo server on pirn's engine for epoll.
#include "../echo_pirn.hpp"

int main(int, char** argv) { return bench::serve_echo(bench::epoll, argv[1]); }
