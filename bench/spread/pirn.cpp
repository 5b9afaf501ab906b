// Built by the compiler without the plugin.
#include "spread.hpp"

int main() { spread_workload("pirn"); }
