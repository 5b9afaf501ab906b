// Linked without -z now: reports that and ends.
#include "pirn/fiber/expert/bounded.hpp"
#include "pirn/fiber/runtime.hpp"

int main() {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] { pirn::spawn_bounded([]() noexcept {}).join(); });
}
