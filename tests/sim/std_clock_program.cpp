// Only the standard library reads a clock here, and this object calls no function of the C library by name. The
// exploration's functions must be linked in all the same.
#include <chrono>
#include <cstdio>

#include "pirn/sim/explore.hpp"

int main() {
  const pirn::sim::result found = pirn::sim::explore([] {
    using namespace std::chrono;
    pirn::sim::check(steady_clock::now().time_since_epoch() == hours(1), "the clock is the machine's");
    pirn::sim::check(system_clock::now() == sys_days(2000y / January / 1), "the calendar is the machine's");
  });
  std::fputs(found.text().c_str(), stdout);
  return found ? 0 : 1;
}
