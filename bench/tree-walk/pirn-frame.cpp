// Generators on buffers in the consumer's frame.
#include "pirn.hpp"

int main() { bench::tree_walk_rows<pirn::generator<std::uint64_t, pirn::frame<16384>>>("pirn-frame"); }
