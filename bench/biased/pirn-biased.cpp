// pirn::biased_mutex.
#include "pirn/sync/expert/biased_mutex.hpp"

#include "biased.hpp"

namespace {

struct units : bench::units {
  using mutex = pirn::biased_mutex;
};

}  // namespace

int main() {
  bench::units::run([] { bench::biased<units>::measure("pirn-biased", "pirn::biased_mutex"); });
}
