// pirn's tasks, C++20 coroutines, and the same channels that its fibers use.
#include "../units_pirn.hpp"
#include "chan.hpp"
#include "pirn/sync/co.hpp"

namespace {

using bench::units;
using channel = pirn::channel<std::uint64_t>;
namespace co = pirn::co;

pirn::task<> ping(channel& there, channel& back, std::uint64_t n) {
  std::uint64_t number = 0;
  for (std::uint64_t k = 0; k < n; k += 2) {
    bench::check((co_await co::send(there, number + 1)).has_value(), "it can be sent");
    number = (co_await co::receive(back)).value();
  }
  bench::check(number == n, "every message is answered");
}
pirn::task<> pong(channel& there, channel& back, std::uint64_t n) {
  for (std::uint64_t k = 0; k < n; k += 2) {
    bench::check((co_await co::send(back, (co_await co::receive(there)).value() + 1)).has_value(), "it can be sent");
  }
}

void ping_pong(std::uint64_t n) {
  channel there(1);
  channel back(1);
  units::together(2, [&](std::uint64_t i) { pirn::await(i == 0 ? ping(there, back, n) : pong(there, back, n)); });
}

pirn::task<> sends(channel& to, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t number = begin; number < end; ++number) {
    bench::check((co_await co::send(to, std::uint64_t{number})).has_value(), "it can be sent");
  }
}
pirn::task<> receives(channel& from, std::uint64_t count, std::atomic<std::uint64_t>& sum) {
  std::uint64_t mine = 0;
  for (std::uint64_t k = 0; k < count; ++k) {
    mine += (co_await co::receive(from)).value();
  }
  sum += mine;
}

void fan(std::uint64_t n, bool first_sends) {
  channel between(bench::chan_places);
  std::atomic<std::uint64_t> sum = 0;
  units::together(bench::chan_many + 1, [&](std::uint64_t i) {
    const std::uint64_t share = i == 0 ? n : n / bench::chan_many;
    const std::uint64_t begin = i == 0 ? 0 : (i - 1) * share;
    pirn::await((i == 0) == first_sends ? sends(between, begin, begin + share) : receives(between, share, sum));
  });
  bench::check(sum == n * (n - 1) / 2, "every message arrives once");
}

}  // namespace

int main() {
  units::run([] { bench::chan_row("pirn-co", ping_pong, fan, "co_await of channel<T>"); });
}
