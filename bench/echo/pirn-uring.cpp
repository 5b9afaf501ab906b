// An echo server on pirn's engine for io_uring.
#include "../echo_pirn.hpp"

int main(int, char** argv) {
  if (const char* const refusal = pirn::uring_refusal()) {
    std::fprintf(stderr, "%s\n", refusal);
    return 77;
  }
  return bench::serve_echo(pirn::engine_kind::uring, argv[1]);
}
