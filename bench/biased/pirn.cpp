// pirn::mutex.
#include "biased.hpp"

int main() {
  bench::units::run([] { bench::biased<bench::units>::measure("pirn", "pirn::mutex, the fair one"); });
}
