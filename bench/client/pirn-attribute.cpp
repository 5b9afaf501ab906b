// Over pirn's switch; what suspends in the library, and nothing else, is preserve_none.
#include "client.hpp"

int main() { bench::client_rows("pirn-attribute", "pirn's switch; preserve_none in the library only"); }
