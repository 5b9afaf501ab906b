// The store on pirn's engine for io_uring.
#include "store_pirn.hpp"

int main(int, char** argv) { return bench::serve_store(bench::uring(), argv[1]); }
