// Calls with arguments on the stack behind each form of switch: the arguments arrive, and an exception that a call
// throws is caught in the function that suspends, on both sides.
#include "conformance.hpp"
#include "context/pushed.hpp"

namespace conformance {
namespace {

constexpr long rounds = 3;
long shown;

template <class Shape>
CONFORMANCE_KEEP void show(Shape& shape) {
  int ended = 0;
  pushed::body(rounds, ended, [&shape](long total) __attribute__((always_inline)) {
    shown = total;
    shape.yield();
  });
  shown = ended;
}

template <class Shape>
CONFORMANCE_KEEP void behind_a_switch() {
  static Shape shape;
  long all = 0, caught = 0;
  shape.start(&show<Shape>);
  while (!shape.ended) {
    all = all * 7 % 1000003 + shown;
    try {
      pushed::fail(1, 2, 3, 4, 5, 6, 7, 8, 9, pushed::structure{{0, 0, 0, 0, 0, 0, 0, 0, 100}});
    } catch (long code) {
      caught += code;
    }
    shape.resume();
    caught += pushed::sum(0, 0, 0, 0, 0, 0, 0, 0, 0, pushed::structure{{1, 0, 0, 0, 0, 0, 0, 0, 0}});
  }
  expect(all == pushed::shown_by(rounds) && shown == 1, Shape::name,
         "arguments on the stack, and an exception, inside");
  expect(caught == 101 * 3 * rounds, Shape::name, "arguments on the stack, and an exception, outside");
}

}  // namespace

void check_pushed() {
  behind_a_switch<by_switch_to>();
  behind_a_switch<by_transfer>();
  behind_a_switch<by_transfer_into>();
#if defined(CONFORMANCE_HAS_FORK)
  behind_a_switch<by_fork>();
#endif
}

}  // namespace conformance
