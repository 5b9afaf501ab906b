// pirn's fibers that have been deep and wait.
#include "fibers.hpp"

int main() {
  trim_bench::run("pirn", [](auto what) { what(); });
}
