// pirn's fibers, each with a wait queue to wait in for messages.
#include "pirn/fiber/wait_queue.hpp"
#include "pirn_fibers.hpp"

namespace {

class place {
 public:
  void put(std::uint8_t message) {
    mail_.put(message);
    waiting_.notify_one();
  }
  std::uint8_t take() {
    if (mail_.empty()) {
      waiting_.lock();
      (void)waiting_.wait({.stoppable = false, .what = "a message"});
    }
    return mail_.take();
  }

 private:
  pirn::wait_queue waiting_;
  bench::ring::mailbox mail_;  // of the one worker
};

}  // namespace

int main() { bench::ring::of_fibers<place>("pirn", "fibers, each on a stack of its own"); }
