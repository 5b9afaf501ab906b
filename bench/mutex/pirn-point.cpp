// As pirn, but each lock is also a safe point of a time slice, which is off: the cost if all locks were.
#include "../units_pirn.hpp"
#include "mutex.hpp"

namespace {

struct point_units : bench::units {
  static constexpr const char* name = "pirn-point";
  static constexpr const char* note = "a safe point before each lock";
  struct mutex : pirn::mutex {
    [[gnu::always_inline]] void lock() {
      pirn::this_fiber::preemption_point();
      pirn::mutex::lock();
    }
  };
};

}  // namespace

int main() { point_units::run(bench::mutex_row<point_units>); }
