// Frames from a pool.
#include "transfer.hpp"

int main() { bench::transfer_main("cpp20-transfer", "by symmetric transfer, as std::generator; frames pooled"); }
