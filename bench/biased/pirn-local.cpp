// pirn::local, for which nothing may come from elsewhere.
#include "../units_pirn_local.hpp"
#include "biased.hpp"

int main() {
  using all = bench::biased<bench::local_units>;
  bench::local_units::run([] {
    all::measure("pirn-local", "pirn::local");
    all::measure_permits<pirn::local::counting_semaphore<>>("pirn-local", "pirn::local");
    all::measure_events<pirn::local::event>("pirn-local", "pirn::local");
  });
}
