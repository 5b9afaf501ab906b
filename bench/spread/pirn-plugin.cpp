// As pirn, but with the compiler plugin, which spreads the convention that preserves no register up the chain.
#include "spread.hpp"

int main() { spread_workload("pirn-plugin"); }
