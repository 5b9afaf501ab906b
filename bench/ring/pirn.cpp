// pirn's fibers, each with a wait queue to wait in for messages.
#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn_fibers.hpp"

namespace {
class place : public bench::ring::place_in<pirn::wait_queue> {};
}  // namespace

int main() { bench::ring::of_fibers<place>("pirn", "fibers, each on a stack of its own"); }
