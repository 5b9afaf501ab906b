// pirn's tasks, C++20 coroutines on one worker without fibers, that all sleep.
#include <string>
#include <vector>

#include "../harness.hpp"
#include "pirn/fiber/co.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/fiber/spawned.hpp"

namespace {

using clock = pirn::platform::clock;

constexpr double lead_ns = 10'000;  // for each pending timer: all are asleep before the first is due

/// The cost until all are asleep, and until all have woken up.
struct cost {
  double insert;
  double end;
};

/// Lets tasks wait until all of them are let in at once.
class gate_awaiter : public pirn::detail::own_awaiter {
 public:
  explicit gate_awaiter(pirn::detail::completion& gate) noexcept : gate_(gate) {}
  static bool await_ready() noexcept { return false; }
  template <typename Handle>
  std::coroutine_handle<> await_suspend(Handle h) noexcept {
    return wait_.begin(gate_, h.promise().chain(), h, "the gate");
  }
  static void await_resume() noexcept {}

 private:
  pirn::detail::completion& gate_;
  pirn::detail::completion_wait wait_;
};

struct sleepers {
  pirn::detail::completion gate;
  pirn::platform::time_point base;
  std::uint64_t waiting = 0;
  std::uint64_t asleep = 0;
  std::uint64_t woken = 0;
};

pirn::task<> sleeps(sleepers& all, std::uint64_t i, bool cancel) {
  ++all.waiting;
  co_await gate_awaiter(all.gate);
  const auto due = all.base + std::chrono::nanoseconds(i * 6364136223846793005 % 1'000'000'000);
  ++all.asleep;
  const auto slept = co_await pirn::co::sleep_until(due);
  all.woken += cancel ? !slept && slept.error() == pirn::wait_error::stopped : slept && clock::now() >= due;
}

/// All sleep until some time within a second that begins `after`; if `cancel`, all are stopped instead.
cost sleep_all(std::uint64_t pending, pirn::platform::duration after, bool cancel) {
  sleepers all;
  std::vector<pirn::spawned<>> tasks;
  tasks.reserve(pending);
  for (std::uint64_t i = 0; i < pending; ++i) {
    tasks.push_back(pirn::co::spawn(sleeps(all, i, cancel)));
  }
  while (all.waiting < pending) {
    pirn::this_fiber::yield();
  }
  all.base = clock::now() + after;
  const double start = bench::now_ns();
  (void)all.gate.set();
  while (all.asleep < pending) {
    pirn::this_fiber::yield();
  }
  const double inserted = bench::now_ns();
  if (clock::now() >= all.base) {
    bench::skip("the machine is too slow: some are due before all are asleep");
  }
  if (cancel) {
    for (pirn::spawned<>& each : tasks) {
      each.request_stop();
    }
  }
  for (pirn::spawned<>& each : tasks) {
    each.join();
  }
  const double ended = bench::now_ns();
  bench::check(all.woken == pending, "every sleep ends once and for the right reason");
  const auto number = static_cast<double>(pending);
  return {(inserted - start) / number, (ended - inserted) / number};
}

void measure() {
  const std::uint64_t pending = bench::input("MILLION");
  const auto row = [&](const char* op, double ns) {
    bench::row("timers", "pirn-co", R"({"op":")" + std::string(op) + R"(","pending":)" + std::to_string(pending) + "}",
               "ns", ns, "sleeping tasks, stopped to cancel");
  };
  const cost stopped = sleep_all(pending, std::chrono::hours(1), true);
  const cost slept =
      sleep_all(pending, std::chrono::nanoseconds(static_cast<std::int64_t>(lead_ns * double(pending))), false);
  row("insert", stopped.insert);
  row("cancel", stopped.end);
  row("fire", slept.end);
}

}  // namespace

int main() {
  bench::need_memory(bench::input("MILLION") * 1000);
  pirn::runtime runtime({.workers = 1, .stack_size = bench::input("STACK")});
  runtime.run(measure);
}
