// pirn::file on the engine for io_uring.
#include "file_pirn.hpp"

int main() { return bench::read_as_fibers("pirn-uring", bench::uring(), bench::read_whole); }
