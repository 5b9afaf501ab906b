// pirn::file on the engine for epoll: what is not cached is read in the blocking pool.
#include "file_pirn.hpp"

int main() { return bench::read_as_fibers("pirn-epoll", bench::epoll, bench::read_whole); }
