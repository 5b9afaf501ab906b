// pirn's fibers on one worker: write_fully, send_some and wait_for_ready are ordinary functions.
#include "senders.hpp"

int main() {
  pirn::guarded_pool stacks;
  bench::write_fully_with("pirn", stacks, "fibers, this_fiber::yield");
}
