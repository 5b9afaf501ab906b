// pirn's fibers and channels, whose senders switch to a waiting receiver, with the value in a register.
#include "../units_pirn.hpp"
#include "channel_pirn.hpp"

int main() {
  bench::units::run([] {
    bench::chan<bench::units, bench::channel_of_pirn_with<pirn::wake_policy::switch_over>>::measure(
        "channel<T>, wake_policy::switch_over", "pirn-switch-over");
  });
}
