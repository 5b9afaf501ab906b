// Generators on pooled stacks.
#include "pirn.hpp"

int main() { bench::tree_walk_rows<pirn::generator<std::uint64_t>>("pirn"); }
