// Linked statically: what explorations put in the place of the C library's functions still leads to these.
#include <unistd.h>

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
  int ran = 0;
  std::thread([&] { ran = 1; }).join();
  if (ran != 1) {
    return said("no thread starts outside of an exploration");
  }
  std::at_quick_exit([] { _exit(0); });
  std::quick_exit(1);
}
