// As the compiler makes it by itself.
#include "spread.hpp"

int main() { spread_workload("pirn"); }
