// The gain of each optimization of a yield, one after the other, after Li and others, "Stackful Coroutine Made Fast":
// fibers yield to each other in turn, at first by the library's own yield over a switch that is a function and saves
// everything, at last by this_fiber::yield as it is. The loop that is subtracted for the net figure also loses all
// registers in each turn.
#include <utility>
#include <vector>

#include "../empty_loop.hpp"
#include "../harness.hpp"
#include "forms.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"

namespace {

namespace yields = bench::yields;

constexpr std::size_t fibers = 10;
constexpr std::size_t usual_stack = 64 << 10;
constexpr std::size_t small_stack = 4112;  // the paper's; the pool gives whole pages

/// Yields `times` times. Each `which` is a function of its own, at its own address.
template <class Form, std::size_t which>
[[gnu::noinline]] std::uint64_t body(std::uint64_t times) {
  std::uint64_t k = 0;
  for (; k < times; ++k) {
    Form::yield();
  }
  return k;
}

using function = std::uint64_t (*)(std::uint64_t);

template <class Form, std::size_t... which>
std::vector<function> bodies(std::index_sequence<which...> /*all*/) {
  return {&body<Form, which>...};
}

/// Returns the cost of one yield among fibers that run these functions in turn.
double cost_among(const std::vector<function>& run) {
  return bench::ns_per_operation(
      [&](std::uint64_t n) {
        std::uint64_t done = 0;
        std::vector<pirn::fiber> all;
        for (std::size_t i = 0; i < fibers; ++i) {
          all.push_back(pirn::spawn([&done, &run, i, n] { done += run[i % run.size()](n / fibers); }));
        }
        for (pirn::fiber& each : all) {
          each.join();
        }
        bench::check(done == n, "every fiber yields as often as asked");
      },
      fibers);
}

struct cost {
  double one_body;
  double ten_bodies;
};

template <class Form>
cost measure(std::size_t stack_size, bool colour) {
  pirn::guarded_pool stacks({.colour = colour});
  pirn::runtime runtime({.workers = 1, .calling_thread = true, .stack_size = stack_size, .stacks = &stacks});
  cost found{};
  runtime.run([&] {
    found.one_body = cost_among(bodies<Form>(std::make_index_sequence<1>()));
    found.ten_bodies = cost_among(bodies<Form>(std::make_index_sequence<fibers>()));
  });
  return found;
}

void row(const char* step, double loop, const cost& found) {
  const auto each = [&](const char* what, const char* bodies, double ns) {
    const std::string params =
        std::string(R"({"step":")") + step + R"(","bodies":")" + bodies + R"(","cost":")" + what + "\"}";
    bench::row("yield-breakdown", "pirn", params, "ns", ns);
  };
  each("gross", "one", found.one_body);
  each("net", "one", found.one_body - loop);
  each("gross", "ten", found.ten_bodies);
  each("net", "ten", found.ten_bodies - loop);
}

}  // namespace

int main() {
  const double loop = bench::ns_per_operation(bench::empty_loop, fibers);
  row("0 all saved", loop, measure<yields::out_of_line<yields::switch_saving_all>>(usual_stack, false));
  row("1 six registers", loop, measure<yields::out_of_line<yields::switch_saving_six>>(usual_stack, false));
  row("2 switch inlined", loop, measure<yields::inlined_switch>(usual_stack, false));
  row("3 preserve_none", loop, measure<yields::in_convention>(usual_stack, false));
  row("4 yield inlined", loop, measure<yields::inlined_yield>(usual_stack, false));
  row("5 colouring", loop, measure<yields::inlined_yield>(usual_stack, true));
  row("6 small stack", loop, measure<yields::inlined_yield>(small_stack, true));
}
