// The store on pirn's engine for epoll.
#include "store_pirn.hpp"

int main(int, char** argv) { return bench::serve_store(bench::epoll, argv[1]); }
