// Explores the program of ../fibers.cpp, whose main function has another name here.
#include <pirn/sim/explore.hpp>

#include <cstdio>

int run_fibers();
#undef main

int main() {
  const pirn::sim::result found = pirn::sim::explore([] { pirn::sim::check(run_fibers() == 0); });
  std::fputs(found.text().c_str(), stdout);
  return found ? 0 : 1;
}
