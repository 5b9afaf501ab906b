// pirn::mutex.
#include "biased.hpp"

int main() {
  bench::units::run([] {
    bench::biased<bench::units>::measure("pirn", "pirn::mutex, the fair one");
    bench::biased<bench::units>::measure_signals<pirn::counting_semaphore<>, pirn::event>("pirn", "pirn's own");
  });
}
