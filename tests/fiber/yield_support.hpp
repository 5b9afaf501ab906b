// What the tests of yields inside of calls that run elsewhere share.
#pragma once

#include <atomic>
#include <stdexcept>
#include <string>

#include "fiber/support.hpp"
#include "pirn/fiber/fork_join.hpp"

namespace pirn_test {

/// Returns whether `f` is refused, with the message for this misuse.
template <class F>
bool refused(F&& f) {
  try {
    f();
  } catch (const std::logic_error& why) {
    EXPECT_NE(std::string(why.what()).find("a body yields from inside blocking() or from a half of fork2"),
              std::string::npos)
        << why.what();
    return true;
  }
  return false;
}

template <class Generator>
int sum_of(Generator&& of) {
  int sum = 0;
  for (const int each : of) {
    sum += each;
  }
  return sum;
}

template <class F>
void on_migratable(unsigned workers, F body) {
  rig r(workers);
  r.rt.spawn(body, {.migratable = true}).join();
}

/// Forks. The second half begins before the first has ended.
template <class First, class Second>
void fork_apart(First first, Second second) {
  std::atomic<bool> begun = false;
  pirn::fork2(
      [&] {
        EXPECT_TRUE(eventually([&] { return begun.load(); }));
        first();
      },
      [&] {
        begun = true;
        second();
      });
}

}  // namespace pirn_test
