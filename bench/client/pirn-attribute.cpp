// Built on pirn's switch; only the suspending functions of the library are preserve_none.
#include "client.hpp"

int main() { bench::client_rows("pirn-attribute", "pirn's switch; preserve_none in the library only"); }
