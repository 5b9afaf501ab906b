// As pirn-local, but a woken fiber goes first without a bound: the order of an executor that keeps a stack of ready
// tasks.
#include "pirn/sync/expert/local.hpp"
#include "pirn_fibers.hpp"

namespace {
class place : public bench::ring::place_in<pirn::local::wait_queue> {};
}  // namespace

int main() { bench::ring::of_fibers<place>("pirn-lifo", "pirn-local, the fiber woken last runs first, always", ~0U); }
