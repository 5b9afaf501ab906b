// pirn's fibers on one worker that all sleep.
#include <string>
#include <vector>

#include "../harness.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/fiber/runtime.hpp"

namespace {

using clock = pirn::platform::clock;

// For each pending timer: all are asleep before the first is due. Longer under cachegrind.
const double lead_ns = bench::counting() ? 500'000 : 10'000;

/// The cost until all are asleep, and until all have woken up.
struct cost {
  double insert;
  double end;
};

/// All sleep until some time within a second that begins `after`; if `cancel`, all are stopped instead.
cost sleep_all(std::uint64_t pending, pirn::platform::duration after, bool cancel) {
  pirn::wait_queue gate;
  pirn::platform::time_point base;
  std::uint64_t waiting = 0;
  std::uint64_t asleep = 0;
  std::uint64_t woken = 0;
  std::vector<pirn::fiber> all;
  all.reserve(pending);
  for (std::uint64_t i = 0; i < pending; ++i) {
    all.push_back(pirn::spawn([&, i] {
      gate.lock();
      ++waiting;
      (void)gate.wait({.stoppable = false, .what = "the gate"});
      const auto due = base + std::chrono::nanoseconds(i * 6364136223846793005 % 1'000'000'000);
      ++asleep;
      const auto slept = pirn::this_fiber::sleep_until(due);
      woken += cancel ? !slept && slept.error() == pirn::wait_error::stopped : slept && clock::now() >= due;
    }));
  }
  while (waiting < pending) {
    pirn::this_fiber::yield();
  }
  base = clock::now() + after;
  const double start = bench::now_ns();
  gate.notify_all();
  while (asleep < pending) {
    pirn::this_fiber::yield();
  }
  const double inserted = bench::now_ns();
  if (clock::now() >= base) {
    bench::skip("the machine is too slow: some are due before all are asleep");
  }
  if (cancel) {
    for (pirn::fiber& each : all) {
      each.request_stop();
    }
  }
  for (pirn::fiber& each : all) {
    each.join();
  }
  const double ended = bench::now_ns();
  bench::check(woken == pending, "every sleep ends once and for the right reason");
  const auto number = static_cast<double>(pending);
  return {(inserted - start) / number, (ended - inserted) / number};
}

void measure() {
  const std::uint64_t pending = bench::counting() ? bench::input("COUNT") : bench::input("MILLION");
  const auto lead = std::chrono::nanoseconds(static_cast<std::int64_t>(lead_ns * double(pending)));
  if (bench::counting()) {
    // Loop 0 inserts and cancels, loop 1 inserts and fires.
    const bool cancel = bench::input("COUNT_LOOP") == 0;
    sleep_all(pending, cancel ? std::chrono::hours(1) : lead, cancel);
    return;
  }
  const auto row = [&](const char* op, double ns) {
    bench::row("timers", "pirn", R"({"op":")" + std::string(op) + R"(","pending":)" + std::to_string(pending) + "}",
               "ns", ns, "sleeping fibers, stopped to cancel");
  };
  const cost stopped = sleep_all(pending, std::chrono::hours(1), true);
  const cost slept = sleep_all(pending, lead, false);
  row("insert", stopped.insert);
  row("cancel", stopped.end);
  row("fire", slept.end);
}

}  // namespace

int main() {
  bench::need_memory(bench::counting() ? 0 : bench::input("MILLION") * 5000);
  pirn::runtime runtime({.workers = 1, .stack_size = bench::input("STACK")});
  runtime.run(measure);
}
