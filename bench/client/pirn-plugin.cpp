// As pirn-attribute, but compiled with the plugin, which gives the client's functions the convention too.
#include "client.hpp"

int main() { bench::client_rows("pirn-plugin", "preserve_none by the compiler plugin in the client too"); }
