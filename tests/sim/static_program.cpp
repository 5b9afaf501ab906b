// A statically linked program: the exploration's replacements of C library functions still lead to those functions.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "pirn/sim/explore.hpp"

namespace {

int said(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  return 1;
}

}  // namespace

int main() {
  const pirn::sim::result found = pirn::sim::explore([] { std::thread([] {}).join(); });
  if (found.what != pirn::sim::outcome::aborted) {
    return said("a thread starts unseen");
  }
  const pirn::sim::result slept = pirn::sim::explore([] {
    const auto began = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::hours(1));
    pirn::sim::check(std::chrono::steady_clock::now() - began == std::chrono::hours(1));
  });
  if (!slept || slept.seconds > 600) {
    return said("the clock is not the exploration's");
  }
  if (std::chrono::system_clock::now().time_since_epoch() < std::chrono::years(50)) {
    return said("the clock is none outside of an exploration");
  }
  int ran = 0;
  std::thread([&] { ran = 1; }).join();
  if (ran != 1) {
    return said("no thread starts outside of an exploration");
  }
  std::at_quick_exit([] { _exit(0); });
  std::quick_exit(1);
}
