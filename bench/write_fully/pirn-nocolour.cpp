// As pirn, but all stacks begin at the same place of their page, which shows the value of stack colouring.
#include "senders.hpp"

int main() {
  pirn::guarded_pool stacks({.colour = false});
  bench::write_fully_with("pirn-nocolour", stacks, "the same fibers, stacks all begin at the same place of their page");
}
