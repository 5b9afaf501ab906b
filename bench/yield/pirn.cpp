// pirn's fibers.
#include "yield.hpp"

int main() {
  bench::yields("pirn", {}, [] {});
}
