// The same fibers on stacks that all begin at the same place of their page: what stack colouring is worth.
#include "senders.hpp"

int main() {
  pirn::guarded_pool stacks({.colour = false});
  bench::write_fully_with("pirn-nocolour", stacks, "the same fibers, stacks all begin at the same place of their page");
}
