// pirn's fibers, each with a wait queue that only the fibers of its worker can use.
#include "pirn/sync/expert/local.hpp"
#include "pirn_fibers.hpp"

namespace {
class place : public bench::ring::place_in<pirn::local::wait_queue> {};
}  // namespace

int main() { bench::ring::of_fibers<place>("pirn-local", "fibers that wait in local queues"); }
