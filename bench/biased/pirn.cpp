// pirn::mutex.
#include "biased.hpp"

int main() {
  bench::units::run([] {
    bench::biased<bench::units>::measure("pirn", "pirn::mutex, the fair one");
    bench::biased<bench::units>::measure_permits<pirn::counting_semaphore<>>("pirn", "pirn's own");
    bench::biased<bench::units>::measure_events<pirn::event>("pirn", "pirn's own");
  });
}
