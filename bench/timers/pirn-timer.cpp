// pirn's timers without fibers: a queue of a worker, whose timers call a function. The queue looks at the clock's place
// in the program, in ticks of 50 microseconds, so nothing waits.
#include <memory>
#include <string>
#include <utility>

#include "../harness.hpp"
#include "pirn/fiber/expert/timer.hpp"

namespace {

using namespace std::chrono_literals;
using time_point = pirn::platform::time_point;
using pirn::platform::duration;

constexpr std::uint64_t between_ticks = 1000;  // a worker makes at most that many switches from one tick to the next
constexpr duration tick = 50us;

struct one_timer : pirn::call_timer {
  std::uint64_t fired = 0;
};

struct outcome {
  std::uint64_t fired = 0;
  bool in_order = true;
  time_point last;
};
outcome so_far;

void fired(pirn::call_timer& t) noexcept {
  ++static_cast<one_timer&>(t).fired;
  ++so_far.fired;
  so_far.in_order &= so_far.last <= t.when;
  so_far.last = t.when;
}

/// The timers of a program that sleeps until some time within a second that begins at `base`.
class sleepers {
 public:
  explicit sleepers(std::uint64_t pending) : all_(std::make_unique<one_timer[]>(pending)), pending_(pending) {}

  void insert(time_point base) {
    for (std::uint64_t i = 0; i < pending_; ++i) {
      one_timer& each = all_[i];
      each.when = base + std::chrono::nanoseconds(i * 6364136223846793005 % 1'000'000'000);
      each.call = &fired;
      queue_.insert(each);
      if (i % between_ticks == 0) {
        bench::check(queue_.next() >= base, "none is due");
      }
    }
    static_cast<void>(queue_.next());
  }
  void cancel() {
    for (std::uint64_t i = 0; i < pending_; ++i) {
      queue_.cancel(all_[i]);
      if (i % between_ticks == 0) {
        static_cast<void>(queue_.next());
      }
    }
    bench::check(queue_.next() == pirn::platform::never, "no timer is left");
  }
  void fire(time_point base) {
    so_far = {};
    for (time_point now = base; so_far.fired < pending_; now += tick) {
      queue_.fire(now);
      const time_point next = queue_.next();
      bench::check(next > now, "those that are due have fired");
      if (next != pirn::platform::never && next - now > tick) {
        now = next - tick;
      }
    }
    bench::check(so_far.in_order, "timers fire in order");
    for (std::uint64_t i = 0; i < pending_; ++i) {
      bench::check(all_[i].fired == 1, "each fires once");
    }
  }

 private:
  std::unique_ptr<one_timer[]> all_;
  std::uint64_t pending_;
  pirn::timer_queue queue_;
};

constexpr time_point base{1h};

template <class Work>
double cost_of(std::uint64_t pending, Work work) {
  const double start = bench::now_ns();
  work();
  return (bench::now_ns() - start) / static_cast<double>(pending);
}

void measure(std::uint64_t pending) {
  const auto row = [&](const char* op, double ns) {
    bench::row("timers", "pirn-timer",
               R"({"op":")" + std::string(op) + R"(","pending":)" + std::to_string(pending) + "}", "ns", ns,
               "timers alone: no fiber sleeps");
  };
  sleepers all(pending);
  const double first = cost_of(pending, [&] { all.insert(base); });
  const double cancel = cost_of(pending, [&] { all.cancel(); });
  const double again = cost_of(pending, [&] { all.insert(base); });
  const double fire = cost_of(pending, [&] { all.fire(base); });
  row("insert", first < again ? again : first);
  row("cancel", cancel);
  row("fire", fire);
}

}  // namespace

int main() {
  const std::uint64_t pending = bench::counting() ? bench::input("COUNT") : bench::input("MILLION");
  bench::need_memory(pending * 200);
  if (!bench::counting()) {
    measure(pending);
    return 0;
  }
  // Loop 0 inserts and cancels, loop 1 inserts and fires.
  sleepers all(pending);
  all.insert(base);
  if (bench::input("COUNT_LOOP") == 0) {
    all.cancel();
  } else {
    all.fire(base);
  }
}
