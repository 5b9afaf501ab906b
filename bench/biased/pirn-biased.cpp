// pirn::biased_mutex and pirn::biased_semaphore.
#include "biased.hpp"
#include "pirn/sync/expert/biased_mutex.hpp"
#include "pirn/sync/expert/biased_semaphore.hpp"

namespace {

struct units : bench::units {
  using mutex = pirn::biased_mutex;
};

}  // namespace

int main() {
  bench::units::run([] {
    bench::biased<units>::measure("pirn-biased", "pirn::biased_mutex");
    bench::biased<units>::measure_permits<pirn::biased_semaphore<>>("pirn-biased", "pirn::biased_semaphore");
  });
}
