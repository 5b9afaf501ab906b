// pirn::biased_mutex and fibers that any worker may take from another: a lock loses its bias to the first that leaves.
#include "pirn/sync/expert/biased_mutex.hpp"

#include "biased.hpp"

namespace {

struct units : bench::units_that_are<bench::mobility::migratable> {
  using mutex = pirn::biased_mutex;
};

}  // namespace

int main() {
  bench::units::run(
      [] { bench::biased<units>::measure("pirn-biased-migratable", "pirn::biased_mutex, fibers that may be stolen"); });
}
