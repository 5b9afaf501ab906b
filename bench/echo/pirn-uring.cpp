// An echo server on pirn's engine for io_uring.
#include "../echo_pirn.hpp"

int main(int, char** argv) { return bench::serve_echo(bench::uring(), argv[1]); }
