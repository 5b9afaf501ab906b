// pirn's fibers, which send each message and wait for the next one in one step: pirn::call.
#include "../units_pirn.hpp"
#include "chan.hpp"
#include "pirn/sync/call.hpp"

namespace {

using bench::units;
using channel = pirn::channel<std::uint64_t>;

void ping_pong(std::uint64_t n) {
  channel there(bench::input("ROOM"));
  channel back(bench::input("ROOM"));
  units::together(2, [&](std::uint64_t i) {
    std::uint64_t number = 0;
    if (i == 0) {
      for (std::uint64_t k = 0; k < n; k += 2) {
        number = pirn::call(there, number + 1, back).value();
      }
      bench::check(number == n, "every message is answered");
    } else {
      number = there.receive().value();
      for (std::uint64_t k = 2; k < n; k += 2) {
        number = pirn::call(back, number + 1, there).value();
      }
      bench::check(back.send(number + 1).has_value(), "it can be sent");
    }
  });
}

}  // namespace

int main() {
  units::run([] {
    bench::chan_rows("pirn-call", [](const std::string& /*shape*/, std::uint64_t n) { ping_pong(n); }, "pirn::call");
  });
}
